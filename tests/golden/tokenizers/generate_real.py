"""What the tokenizers of real models make of the texts of corpus.py.

usage: generate_real.py FOLDER     (needs Python's tokenizers, sentencepiece
and gguf; FOLDER is what scripts/fetch_tokenizers.py filled)

Writes real/NAME.sums for each NAME of FOLDER: for each text, the number of ids
(LEB128), the CRC32C of the ids as little-endian 32-bit numbers and the CRC32C
of the text that they decode to; sums, since the ids themselves would take
700 KB. All are by Hugging Face tokenizers: of a tokenizer.json as it is; of a
tokenizer.model or a GGUF from the pieces, scores and merges in it. Ends with an
error where SentencePiece, which takes no special token from a text, gives other
ids for its own models. Prints how many texts decode to themselves.
"""

import os
import sys

import gguf
import sentencepiece
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers
from sentencepiece import sentencepiece_model_pb2

import corpus
import generate

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
PRE_TOKENIZERS = {
    "gpt-2": (None, (generate.byte_level(True), )),
    "llama-bpe":
    (None, (generate.split(generate.LLAMA3), generate.byte_level())),
    "qwen2": (normalizers.NFC(),
              (generate.split(generate.QWEN2), generate.byte_level())),
}


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def write_sums(name, texts, ids, decoded):
    with open(os.path.join(generate.HERE, "real", name + ".sums"),
              "wb") as file:
        for row, text in zip(ids, decoded):
            file.write(generate.leb128([len(row)]))
            file.write(crc32c(b"".join(i.to_bytes(4, "little") for i in row)))
            file.write(crc32c(text.encode("utf-8")))
    same = sum(text == made for text, made in zip(texts, decoded))
    print(f"{name}: {sum(map(len, ids))} ids, {same} texts decode to themselves")


def of_scores(pieces, scores, kinds):
    """A model of SentencePiece: the better the score, the earlier the merge."""
    vocab = {}
    for at, piece in enumerate(pieces):
        vocab.setdefault(piece, at)
    merges = []
    for piece, score, kind in zip(pieces, scores, kinds):
        if kind not in (NORMAL, USER_DEFINED):
            continue
        for cut in range(1, len(piece)):
            if piece[:cut] in vocab and piece[cut:] in vocab:
                merges.append((-score, vocab[piece], piece[:cut], piece[cut:]))
    merges.sort()
    made = tokenizers.Tokenizer(
        models.BPE(vocab=vocab, merges=[merge[2:] for merge in merges],
                   unk_token=pieces[kinds.index(UNKNOWN)], fuse_unk=True,
                   byte_fallback=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = generate.SPM_DECODER
    return made


def sentencepiece_of_scores(pieces, scores, kinds):
    """The model file of the same; also the library's reading of one."""
    proto = sentencepiece_model_pb2.ModelProto()
    for piece, score, kind in zip(pieces, scores, kinds):
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.model_type = 2
    proto.trainer_spec.byte_fallback = True
    proto.normalizer_spec.name = "identity"
    proto.normalizer_spec.remove_extra_whitespaces = False
    return proto.SerializeToString()


def check_against_library(name, serialized, made, texts):
    library = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    for at, text in enumerate(texts):
        theirs = library.encode(text)
        ours = made.encode(text, add_special_tokens=False).ids
        if theirs != ours:
            sys.exit(f"{name}, text {at} {text!r}: SentencePiece gives {theirs},"
                     f" tokenizers {ours}")


def of_model_file(name, path, texts):
    proto = sentencepiece_model_pb2.ModelProto()
    with open(path, "rb") as file:
        serialized = file.read()
    proto.ParseFromString(serialized)
    made = of_scores([piece.piece for piece in proto.pieces],
                     [piece.score for piece in proto.pieces],
                     [piece.type for piece in proto.pieces])
    check_against_library(name, serialized, made, texts)
    return made


def of_gguf(name, path, texts):
    fields = gguf.GGUFReader(path).fields

    def field(key):
        return fields["tokenizer.ggml." + key].contents()

    pieces, kinds = field("tokens"), field("token_type")
    if field("model") == "llama":
        made = of_scores(pieces, field("scores"), kinds)
        serialized = sentencepiece_of_scores(pieces, field("scores"), kinds)
        check_against_library(name, serialized, made, texts)
        return made
    vocab = {piece: at for at, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(
        models.BPE(vocab=vocab, ignore_merges=field("pre") == "llama-bpe",
                   merges=[tuple(m.split(" ")) for m in field("merges")]))
    normalizer, steps = PRE_TOKENIZERS[field("pre")]
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = generate.sequence(*steps)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([
        generate.special(p) for p, kind in zip(pieces, kinds)
        if kind == CONTROL])
    made.add_tokens([
        AddedToken(p, normalized=False) for p, kind in zip(pieces, kinds)
        if kind == USER_DEFINED])
    return made


def main():
    texts = corpus.texts()
    folder = sys.argv[1]
    os.makedirs(os.path.join(generate.HERE, "real"), exist_ok=True)
    for name in sorted(os.listdir(folder)):
        (file, ) = os.listdir(os.path.join(folder, name))
        path = os.path.join(folder, name, file)
        if file == "tokenizer.json":
            made = tokenizers.Tokenizer.from_file(path)
        elif file == "tokenizer.model":
            made = of_model_file(name, path, texts)
        else:
            made = of_gguf(name, path, texts)
        ids = [made.encode(t, add_special_tokens=False).ids for t in texts]
        write_sums(name, texts, ids, [made.decode(row) for row in ids])
    return 0


if __name__ == "__main__":
    sys.exit(main())
