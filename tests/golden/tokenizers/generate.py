"""Makes the small tokenizers of each family and the ids that they must give.

usage: generate.py [SMOLLM2.gguf]     (needs Python's tokenizers,
sentencepiece and, for the file that scripts/fetch_model.sh brings, gguf)

The pre-tokenizer, normaliser and decoder sections are those of the families'
published tokenizer.json files; vocabulary and merges are trained on the texts
of corpus.py, so that files stay small. Writes into its own folder: texts.jsonl,
and for each family FAMILY/tokenizer.json and FAMILY.ids; spm_*/tokenizer.model
by the SentencePiece library. An .ids file holds, for each text, the number of
ids and the ids, all as LEB128; FAMILY.decoded the texts that the ids decode to,
where those differ: [index of the text, decoded text] in each line. Some
trainers break ties by chance, so a new run makes other vocabularies and their
ids.
"""

import collections
import json
import os
import sys

import sentencepiece
import tokenizers
from tokenizers import (AddedToken, Regex, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

import corpus

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB = 900

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [
    r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"
    r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
]


def byte_level(regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def special(text, **kw):
    return AddedToken(text, special=True, normalized=False, **kw)


def byte_bpe(pre_tokenizer, added, normalizer=None, **model):
    made = tokenizers.Tokenizer(models.BPE(**model))
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = pre_tokenizer
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, show_progress=False, special_tokens=[],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    return made, trainer, added


def sequence(*steps):
    return pre_tokenizers.Sequence(list(steps))


SPM_DECODER = decoders.Sequence([
    decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
    decoders.Strip(" ", 1, 0)])


def spm_bpe(normalizer, pre_tokenizer, decoder):
    made = tokenizers.Tokenizer(
        models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    if normalizer:
        made.normalizer = normalizer
    if pre_tokenizer:
        made.pre_tokenizer = pre_tokenizer
    made.decoder = decoder
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, show_progress=False, limit_alphabet=250,
        special_tokens=tokens, max_token_length=12)
    return made, trainer, [special(t) for t in tokens[:3]]


def unigram():
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    made.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCAB, show_progress=False, unk_token="<unk>",
        special_tokens=["<unk>", "<s>", "</s>"])
    return made, trainer, [special(t) for t in ("<unk>", "<s>", "</s>")]


def families():
    yield "gpt2", byte_bpe(byte_level(True), [special("<|endoftext|>")])
    yield "smollm2", byte_bpe(
        sequence(pre_tokenizers.Digits(individual_digits=True),
                 byte_level(True)),
        [special(t) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    yield "llama3", byte_bpe(
        sequence(split(LLAMA3), byte_level()),
        [special("<|begin_of_text|>"), special("<|eot_id|>")],
        ignore_merges=True)
    yield "qwen2", byte_bpe(
        sequence(split(QWEN2), byte_level()),
        [special("<|endoftext|>"), special("<|im_start|>"),
         special("<|im_end|>"), AddedToken("<think>", normalized=False),
         AddedToken("</think>", normalized=False)],
        normalizer=normalizers.NFC())
    yield "deepseek", byte_bpe(
        sequence(*[split(p) for p in DEEPSEEK], byte_level()),
        [special("<｜begin▁of▁sentence｜>"), special("<｜end▁of▁sentence｜>"),
         AddedToken("<think>", normalized=False),
         AddedToken("</think>", normalized=True),
         AddedToken("ﷺ", normalized=False, lstrip=True, rstrip=True),
         AddedToken("fox", normalized=False, single_word=True)])
    yield "llama2", spm_bpe(
        normalizers.Sequence([normalizers.Prepend("▁"),
                              normalizers.Replace(" ", "▁")]), None,
        SPM_DECODER)
    yield "mistral", spm_bpe(
        None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
        SPM_DECODER)
    yield "unigram", unigram()


def common_characters(texts):
    count = collections.Counter("".join(texts))
    return ["".join(c for c in text if count[c] > 4) for text in texts]


def leb128(values):
    out = bytearray()
    for value in values:
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return out


def write_ids(name, ids):
    with open(os.path.join(HERE, name + ".ids"), "wb") as file:
        for row in ids:
            file.write(leb128([len(row), *row]))


def write_decoded(name, texts, decoded):
    with open(os.path.join(HERE, name + ".decoded"), "w",
              encoding="utf-8") as file:
        for at, (text, made) in enumerate(zip(texts, decoded)):
            if text != made:
                file.write(json.dumps([at, made], ensure_ascii=False) + "\n")


def write_tokenizer(name, made):
    os.makedirs(os.path.join(HERE, name), exist_ok=True)
    # One line: an indented file is twice as long.
    text = json.dumps(json.loads(made.to_str()), ensure_ascii=False,
                      separators=(",", ":"))
    with open(os.path.join(HERE, name, "tokenizer.json"), "w",
              encoding="utf-8") as file:
        file.write(text + "\n")


def write_sentencepiece(name, texts, **options):
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)  # the file holds the prefix that it was made with
    prefix = "tokenizer"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(t for t in texts if "\0" not in t),
        model_prefix=prefix, vocab_size=VOCAB, hard_vocab_limit=False,
        character_coverage=0.98, normalization_rule_name="identity",
        remove_extra_whitespaces=False, minloglevel=2, num_threads=1,
        **options)
    os.remove(prefix + ".vocab")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=prefix + ".model")
    ids = [processor.encode(t) for t in texts]
    write_ids(name, ids)
    write_decoded(name, texts, [processor.decode(i) for i in ids])


def write_ids_of(name, made, texts):
    ids = [made.encode(t, add_special_tokens=False).ids for t in texts]
    write_ids(name, ids)
    write_decoded(name, texts, [made.decode(i) for i in ids])


def smollm2_of_gguf(path):
    """The tokenizer of the real model; its file is too large to be here."""
    import gguf  # pylint: disable=import-outside-toplevel
    fields = gguf.GGUFReader(path).fields
    pieces, kinds, merges = (
        fields["tokenizer.ggml." + name].contents()
        for name in ("tokens", "token_type", "merges"))
    made = tokenizers.Tokenizer(models.BPE(
        vocab={piece: at for at, piece in enumerate(pieces)},
        merges=[tuple(merge.split(" ")) for merge in merges]))
    made.pre_tokenizer = sequence(
        pre_tokenizers.Digits(individual_digits=True), byte_level(True))
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([
        special(piece) for piece, kind in zip(pieces, kinds) if kind == 3])
    return made


def main():
    texts = corpus.texts()
    with open(os.path.join(HERE, "texts.jsonl"), "w",
              encoding="utf-8") as file:
        for text in texts:
            file.write(json.dumps(text, ensure_ascii=False) + "\n")
    for name, (made, trainer, added) in families():
        # The unigram trainer takes every character that it sees.
        seen = texts if name != "unigram" else common_characters(texts)
        made.train_from_iterator(seen, trainer)
        made.add_special_tokens([t for t in added if t.special])
        made.add_tokens([t for t in added if not t.special])
        if name == "llama3":
            made.post_processor = processors.TemplateProcessing(
                single="<|begin_of_text|> $A",
                special_tokens=[("<|begin_of_text|>", made.token_to_id(
                    "<|begin_of_text|>"))])
        write_tokenizer(name, made)
        write_ids_of(name, made, texts)
    write_sentencepiece("spm_bpe", texts, model_type="bpe", byte_fallback=True)
    write_sentencepiece("spm_unigram", texts, model_type="unigram")
    if len(sys.argv) > 1:
        write_ids_of("smollm2_gguf", smollm2_of_gguf(sys.argv[1]), texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
