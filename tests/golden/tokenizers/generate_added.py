"""Makes the ids of texts with added tokens of every kind.

usage: generate_added.py     (needs Python's tokenizers)

Each tokenizer of FAMILIES gets the tokens of added_tokens.json: one for each
way to set special, normalized, lstrip, rstrip and single_word, and some whose
normalised form is another. added_texts.jsonl holds the texts as lists of
parts, every second one of which is literal: a message, of which special tokens
are no part. The reference knows no literal parts. So special tokens are spelled
either in no literal part, or in literal parts only, and then it is told to take
none: a third of the texts, from LITERAL_FROM on. Ids as in generate.py.
"""

import itertools
import json
import os
import random
import sys

import tokenizers
from tokenizers import AddedToken

import generate

HERE = generate.HERE
FAMILIES = ["gpt2", "qwen2", "llama2", "mistral", "unigram"]
FLAGS = ["special", "normalized", "lstrip", "rstrip", "single_word"]
LITERAL_FROM = 400
TEXTS = 600

# Contents that normalisers change. No two become the same: which one the
# reference takes then is chance.
MORE = [
    ("<e\u0301>", ["special", "normalized"]), ("<\u00ea>", ["normalized"]),
    ("<o\u0308>", ["special"]), ("<\ufb01>", ["special", "normalized"]),
    ("<fj>", ["normalized"]), ("<u v>", ["special", "normalized"]),
    ("<u  v>", ["normalized", "rstrip"]), ("  ", ["normalized"]),
    ("<A><B>", ["special", "normalized"]), ("word", ["single_word"]),
    ("naïve", ["special", "normalized", "single_word"]),
    ("\u3042\u3044", ["special", "normalized"]), ("\u1112\u1161", []),
]
PLAIN = [
    "a", "b ", " c", "  ", "\n", "word", "words", "na\u00efve", "x1", "_", ".",
    "<", ">", "e\u0301", "\u0301", "\u0338x", "\u00e9", "fi", "\ufb01",
    "\u3042", "\u3044 ", "\u1112", "\u1161", "\u11ab", "\u2581", "\u00a0",
    "The quick brown fox", "敏捷的棕色狐狸", "ऋषियों को", "👍🏽", "\t\t ",
]


def added_tokens():
    tokens = []
    for at, flags in enumerate(itertools.product([False, True], repeat=5)):
        letter = chr(ord("A") + at) if at < 26 else chr(ord("a") + at - 26)
        tokens.append(dict(zip(FLAGS, flags), content=f"<{letter}>"))
    for content, flags in MORE:
        tokens.append({name: name in flags for name in FLAGS} |
                      {"content": content})
    return tokens


def texts(tokens):
    rng = random.Random(20261129)
    special = [t["content"] for t in tokens if t["special"]]
    other = [t["content"] for t in tokens if not t["special"]]

    def mixed(words):
        return "".join(rng.choice(words + PLAIN)
                       for _ in range(rng.randint(1, 4)))

    def literal(part):
        return part % 2 == 1

    made = []

    def add(parts, in_literal):
        if fits(parts, in_literal, special):
            made.append(parts)

    for token in special + other:
        for parts in ([token], [f"a{token}b"], [f"a {token} b", " c "],
                      [f" {token}  {token}\n"],
                      [f"\u00e9{token}", "e\u0301 x"]):
            add(parts, False)
    while len(made) < LITERAL_FROM:
        add([mixed(PLAIN if literal(part) else special + other)
             for part in range(rng.randint(1, 6))], False)
    while len(made) < TEXTS:
        add([mixed(special * 3 if literal(part) else other)
             for part in range(rng.randint(2, 6))], True)
    return made


def fits(parts, in_literal, special):
    """No special token is spelled across parts, or where it must not be."""
    for token in special:
        for form in (str, nfkc):
            count = form("".join(parts)).count(form(token))
            allowed = sum(form(p).count(form(token))
                          for p in parts[in_literal::2])
            if count > allowed:
                return False
    return True


def nfkc(text):
    return tokenizers.normalizers.NFKC().normalize_str(text)


def main():
    tokens = added_tokens()
    made = texts(tokens)
    with open(os.path.join(HERE, "added_tokens.json"), "w",
              encoding="utf-8") as file:
        rows = [json.dumps(t, ensure_ascii=False) for t in tokens]
        file.write("[\n" + ",\n".join(rows) + "\n]\n")
    with open(os.path.join(HERE, "added_texts.jsonl"), "w",
              encoding="utf-8") as file:
        for parts in made:
            file.write(json.dumps(parts, ensure_ascii=False) + "\n")
    for family in FAMILIES:
        reference = tokenizers.Tokenizer.from_file(
            os.path.join(HERE, family, "tokenizer.json"))
        for token in tokens:
            add = (reference.add_special_tokens if token["special"] else
                   reference.add_tokens)
            add([AddedToken(**token)])
        ids = []
        for at, parts in enumerate(made):
            reference.encode_special_tokens = at >= LITERAL_FROM
            ids.append(reference.encode("".join(parts),
                                        add_special_tokens=False).ids)
        generate.write_ids("added_" + family, ids)
    return 0


if __name__ == "__main__":
    sys.exit(main())
