"""The texts that tokenizers are compared on: 1,000, the same at each run."""

import random

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, doesn't it?",
    "I'VE said it'd work; they'll see that we're RIGHT. It's 5 o'clock!",
    "La cigüeña tocaba el saxofón detrás del palenque de paja.",
    "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "Luís argüia à Júlia que «brações, fé, chá, óxido, pôr, zângão».",
    "Pójdźże, kiń tę chmurność w głąb flaszy! Zażółć gęślą jaźń.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, με 42 λέξεις.",
    "敏捷的棕色狐狸跳过了懒狗。今天是2024年11月29日,天气很好!",
    "いろはにほへと ちりぬるを、カタカナも漢字も混ざる文章です。",
    "다람쥐 헌 쳇바퀴에 타고파. 한국어 문장입니다.",
    "ऋषियों को सताने वाले दुष्ट राक्षसों का सर्वनाश करने वाला राम।",
    "यह एक परीक्षण है: १२३४५ और 67890।",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ٠١٢٣",
    "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה.",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์",
    "Do bạch kim rất quý nên sẽ dùng để lắp vô xương. Tiếng Việt!",
    "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul ısırgan.",
    "যা হোক, আমি বাংলায় কথা বলি। ৯৮৭৬",
    "தமிழ் மொழி மிகவும் பழமையானது.",
    "ქართული ენა და հայերեն լեզու.",
    "The energy is E = mc², so x₁ ≤ x₂ ⇒ ∑ᵢ aᵢ ≠ ∞; ½ + ¼ = ¾.",
    "Price: $1,234.56 (≈ €1.100,00) — 50% off №7 §3 ©2024 ™",
    "MMXXIV Ⅻ ⅷ ③ ⑳ 〇一二三 ௧௨ 𝟘𝟙𝟚 1000000 12345678901234567890",
]

CODE = [
    "for (int i = 0; i < n; ++i) {\n    sum += a[i] * b[i];\n}\n",
    "def f(x, *args, **kw):\n\treturn {'a': x, \"b\": [1, 2.5e-3]}\n\n\n",
    "#include <vector>\r\nint main() { return 0; }\r\n\r\n",
    "SELECT id, name FROM users WHERE age >= 18 AND name LIKE '%o''k%';",
    "<div class=\"a-b\" id='x_1'>&nbsp;text&amp;</div><!-- comment -->",
    "https://example.org/path/to/page.html?q=a+b&lang=de#top",
    "git commit -m 'fix: off-by-one' && ./run.sh --flag=value | tee log",
    "{\"key\": [true, false, null], \"n\": -0.5e+10}",
    "x = y if z else w  # TODO\n    \n        pass",
    "\\begin{equation} \\frac{a}{b} \\end{equation}",
    "0x1F600 0b1010 1_000 3.14159 1e9 --- === *** ... !!! ??? ~~~",
]

EMOJI = [
    "😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇮🇳", "❤️", "☃", "🤖🚀✨", "🧑🏿‍💻", "1️⃣",
]

SPACES = [
    " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u2003",
    "\u3000", "\u0085", "\u180e", "\u200b", "\u2028", "\u2029", "\ufeff",
    "\u202f", "\x0b", "\x0c", "        ", "\n\n\n\n", " \t \t", "\u1680",
]

ODD = [
    "\x00", "\x01", "\x04", "\x07", "\x1b[0m", "\x7f", "\x9f", "\ufffd",
    "e\u0301", "a\u0308\u0323", "\u1112\u1161\u11ab", "\u0958", "\u212b",
    "\ufb01", "\u0344", "\u1e9b\u0323", "ﷺ", "ſ'ſ", "'S", "'ſ", "K",
    "\U0001d15e", "\U000e0041", "\u2581", "\u2581a", "<|endoftext|>", "<s>",
    "<|im_start|>user\n", "<|im_end|>", "<unk>", "<think>", "</think>",
    "\u01c4", "ß", "ẞ", "İ", "ŉ", "\u0300", "\u200d", "\u0300\u0301a",
]


def random_character(rng):
    """A character of the blocks that Unicode 12 had already filled."""
    low, high = rng.choice([
        (0x20, 0x7e), (0xa1, 0xff), (0x100, 0x17f), (0x391, 0x3a1),
        (0x3b1, 0x3c9), (0x410, 0x44f), (0x5d0, 0x5ea), (0x627, 0x63a),
        (0x905, 0x939), (0xe01, 0xe3a), (0x10d0, 0x10f0), (0x1e00, 0x1eff),
        (0x2010, 0x2027), (0x2190, 0x21ff), (0x2200, 0x22ff),
        (0x2500, 0x257f), (0x3041, 0x3096), (0x30a1, 0x30fa),
        (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0xff01, 0xff5e),
        (0x1d400, 0x1d454), (0x1f300, 0x1f5ff), (0x20000, 0x2a6d6)])
    return chr(rng.randint(low, high))


def one(rng):
    kind = rng.randrange(10)
    if kind < 3:
        words = rng.choice(SENTENCES).split(" ")
        first = rng.randrange(len(words))
        return " ".join(words[first:first + rng.randint(1, 10)])
    if kind == 3:
        code = rng.choice(CODE)
        first = rng.randrange(len(code))
        return code[first:first + rng.randint(5, 50)]
    if kind == 4:
        return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 6)))
    if kind == 5:
        return rng.choice(EMOJI) + rng.choice(["", " ", "x"])
    if kind == 6:
        return rng.choice(ODD)
    if kind == 7:
        return "".join(random_character(rng) for _ in range(rng.randint(1, 8)))
    if kind == 8:
        return str(rng.randrange(10**rng.randint(1, 9)))
    return rng.choice([" ", "", "-", "a", ".", "'", "\n"]) * rng.randint(1, 7)


def texts():
    rng = random.Random(20240717)
    made = SENTENCES + CODE + EMOJI + SPACES + ODD
    while len(made) < 1000:
        made.append("".join(one(rng) for _ in range(rng.randint(1, 5))))
    return made[:1000]
