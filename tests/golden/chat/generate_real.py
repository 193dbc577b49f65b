"""The token ids of chats with the tokenizers of real models, by transformers.

usage: generate_real.py FOLDER > real.json   (needs Python's transformers;
FOLDER is what scripts/fetch_tokenizers.py filled)

Templates and conversations are those of chat.json. The ids are what
apply_chat_template gives; templates that state today's date are left out, and
so are messages that spell an added token, which transformers would parse.
"""

import json
import os
import sys

import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
# Of FOLDER, and the templates of chat.json that go with its tokens.
TOKENIZERS = (
    ("qwen-2.5", "<|im_start|>"),
    ("qwen-3", "<|im_start|>"),
    ("llama-3.2", "<|start_header_id|>"),
    ("deepseek-r1", "<\uff5cUser\uff5c>"),
    ("r1-distill-llama", "<\uff5cUser\uff5c>"),
    ("r1-distill-qwen", "<\uff5cUser\uff5c>"),
)


def main():
    with open(os.path.join(HERE, "chat.json"), encoding="utf-8") as file:
        forms = json.load(file)
    cases = []
    for name, mark in TOKENIZERS:
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=(
            os.path.join(sys.argv[1], name, "tokenizer.json")))
        added = [t.content for t in tokenizer.added_tokens_decoder.values()]
        for at, form in enumerate(forms):
            # A begin that is no token of this one is another model's.
            if (mark not in form["template"] or "strftime" in form["template"]
                    or form["bos"] and form["bos"] not in added):
                continue
            tokenizer.bos_token = form["bos"] or None
            tokenizer.eos_token = form["eos"]
            for rendered in form["rendered"]:
                messages = rendered["messages"]
                if any(token in message["content"] for message in messages
                       for token in added):
                    continue
                ids = tokenizer.apply_chat_template(
                    messages, chat_template=form["template"],
                    add_generation_prompt=True, return_dict=False)
                cases.append({"tokenizer": name, "form": at,
                              "messages": messages, "ids": ids})
    json.dump(cases, sys.stdout, ensure_ascii=True)
    print()


if __name__ == "__main__":
    main()
