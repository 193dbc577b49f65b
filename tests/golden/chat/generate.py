"""Renders conversations by the chat templates that ChatTemplate knows.

usage: generate.py > chat.json      (needs Python's jinja2)

The templates are those of the models' files; of the long ones only what is run
without tools is here. Jinja2 is set up as Hugging Face's transformers does it.
"""

import json
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

GENERATION = "{% if add_generation_prompt %}"
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != "
    "'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named "
    "SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}" + GENERATION +
    "{{ '<|im_start|>assistant\n' }}{% endif %}")
QWEN25 = r"""{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}
    {%- endif %}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""
QWEN25_MATH = QWEN25.replace(
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
    "Please reason step by step, and put your final answer within \\\\boxed{}.")
# A model of another vocabulary, fine-tuned to ChatML.
CHATML_BOS = "{{ bos_token }}" + SMOLLM2.replace(
    "Hugging Face", "O\\'Brien")
# The text between tags instead of literals.
CHATML_DATA = """{% for message in messages %}
  {% if true %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
  {% endif %}
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""
QWEN3 = r"""{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set reasoning_content = '' %}
        {%- if '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\n') %}
            {%- set reasoning_content = message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning_content.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""
LLAMA2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = "
    "messages[1:] %}{% set system_message = messages[0]['content'] %}"
    "{% else %}{% set loop_messages = messages %}{% set system_message = false "
    "%}{% endif %}{% for message in loop_messages %}{% if (message['role'] == "
    "'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation "
    "roles must alternate') }}{% endif %}{% if loop.index0 == 0 and "
    "system_message != false %}{% set content = '<<SYS>>\\n' + system_message "
    "+ '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = "
    "message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif "
    "message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + "
    "eos_token }}{% endif %}{% endfor %}")
LLAMA3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
    "{% endif %}{{ content }}{% endfor %}" + GENERATION +
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")
LLAMA31 = r"""{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""
LLAMA31_DATE = LLAMA31.replace("26 Jul 2024", "05 Dec 2025")
LLAMA32 = LLAMA31.replace(
    '{%- set date_string = "26 Jul 2024" %}',
    '{%- set date_string = strftime_now("%d %b %Y") %}')
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if (message['role'] == "
    "'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation "
    "roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif "
    "message['role'] == 'assistant' %}{{ message['content'] + eos_token }}"
    "{% endif %}{% endfor %}")
MISTRAL01 = MISTRAL.replace("+ eos_token }}", "+ eos_token + ' ' }}")
MISTRAL1 = r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('After the optional system message, conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- if message["role"] == "user" %}
        {%- if loop.first and system_message is defined %}
            {{- " [INST] " + system_message + "\n\n" + message["content"] + " [/INST]" }}
        {%- else %}
            {{- " [INST] " + message["content"] + " [/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] + eos_token}}
    {%- else %}
        {{- raise_exception('Only user and assistant roles are supported, with the exception of an initial optional system message!') }}
    {%- endif %}
{%- endfor %}
"""
MISTRAL3 = r"""{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none %}
            {{- "[AVAILABLE_TOOLS] [" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- endif %}
{%- endfor %}
"""
TEKKEN = MISTRAL3.replace('"[INST] "', '"[INST]"').replace(
    '" " + message["content"]|trim', 'message["content"]')
R1 = (
    "{% set ns = namespace(is_first=false, is_tool=false, "
    "is_output_first=true, system_prompt='') %}{%- for message in messages %}"
    "{%- if message['role'] == 'system' %}{% set ns.system_prompt = "
    "message['content'] %}{%- endif %}{%- endfor %}{{bos_token}}"
    "{{ns.system_prompt}}{%- for message in messages %}{%- if message['role'] "
    "== 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + "
    "message['content']}}{%- endif %}{%- if message['role'] == 'assistant' "
    "and message['content'] is not none %}{% set content = "
    "message['content'] %}{% if '</think>' in content %}{% set content = "
    "content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content "
    "+ '<｜end▁of▁sentence｜>'}}{%- endif %}{%- endfor -%}" + GENERATION +
    "{{'<｜Assistant｜><think>\\n'}}{% endif %}")
V3 = R1.replace("<think>\\n", "").replace(
    "{% if '</think>' in content %}{% set content = "
    "content.split('</think>')[-1] %}{% endif %}", "")

HEADERS = ("<|begin_of_text|>", "<|eot_id|>")
ANGLES = ("<s>", "</s>")
DEEPSEEK = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>")
TEMPLATES = [
    ("ChatML", SMOLLM2, "<|im_start|>", "<|im_end|>"),
    ("ChatML", QWEN25, "", "<|im_end|>"), ("ChatML", QWEN3, "", "<|im_end|>"),
    ("ChatML", QWEN25_MATH, "", "<|im_end|>"),
    ("ChatML", CHATML_BOS, "<s>", "</s>"),
    ("ChatML", CHATML_DATA, "<s>", "</s>"),
    ("Llama 2", LLAMA2, *ANGLES), ("Llama 3", LLAMA3, *HEADERS),
    ("Llama 3", LLAMA31, *HEADERS), ("Llama 3", LLAMA32, *HEADERS),
    ("Llama 3", LLAMA31_DATE, *HEADERS), ("Mistral v1", MISTRAL1, *ANGLES),
    ("Mistral", MISTRAL, *ANGLES), ("Mistral", MISTRAL01, *ANGLES),
    ("Mistral v3", MISTRAL3, *ANGLES), ("Mistral Tekken", TEKKEN, *ANGLES),
    ("DeepSeek", R1, *DEEPSEEK), ("DeepSeek", V3, *DEEPSEEK),
]
CHATS = [
    [("user", "Hello, who are you?")],
    [("user", "  spaces \n around\u3000")],
    [("system", " Be brief.\n"), ("user", "\n 2 + 2?")],
    [("user", "Hi"), ("assistant", "<think>\nhm\n</think>\n\nHello! \n"),
     ("user", "Bye")],
    [("system", "S"), ("user", "a"), ("assistant", " b "), ("user", "c"),
     ("assistant", "d"), ("user", "é 漢字 <|im_end|>")],
]


def raise_exception(message):
    raise ValueError(message)


def main():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: "03 Feb 2025"
    cases = []
    for name, template, bos, eos in TEMPLATES:
        rendered = []
        for chat in CHATS:
            messages = [{"role": r, "content": c} for r, c in chat]
            # The first Mistral templates know no system message.
            if name == "Mistral" and chat[0][0] == "system":
                continue
            text = environment.from_string(template).render(
                messages=messages, bos_token=bos, eos_token=eos,
                add_generation_prompt=True)
            rendered.append({"messages": messages, "text": text})
        cases.append({"name": name, "template": template, "bos": bos,
                      "eos": eos, "rendered": rendered})
    json.dump(cases, sys.stdout, ensure_ascii=False, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
