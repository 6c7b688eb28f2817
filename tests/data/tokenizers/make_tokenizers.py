#!/usr/bin/env python3
"""Makes the tokenizers of this folder, and what Hugging Face's library makes of some texts with them.

    python make_tokenizers.py

Needs `pip install tokenizers==0.23.3`. Each `<name>/tokenizer.json` is a small byte-level BPE, learned from this
file's texts, with the regular expressions, normalizer and added tokens of a model family; `<name>/expected.jsonl`
has a line per text: {"text": …, "ids": […]}, without tokens that begin or end a document.
"""

import json
import os
import random

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = os.path.dirname(os.path.abspath(__file__))

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
            r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level(use_regex=False, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)


FAMILIES = {
    "gpt2": (None, byte_level(use_regex=True, prefix=True), False),
    "llama3": (None, pre_tokenizers.Sequence([split(LLAMA3), byte_level()]), True),
    "qwen": (normalizers.NFC(), pre_tokenizers.Sequence([split(QWEN), byte_level()]), False),
    "deepseek": (normalizers.Sequence([]), pre_tokenizers.Sequence(
        [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK), byte_level()]), False),
    # As DeepSeek-V2's, and with what is rare: a space before each piece, a template instead of a configuration.
    "digits": (normalizers.NFC(), pre_tokenizers.Sequence(
        [split(r"[\r\n]"), split(r"\s?[A-Za-zµÀ-ÖØ-öø-ÿ]+"), split(r"\s+$"), pre_tokenizers.Digits(individual_digits=True),
         byte_level(prefix=True)]), False),
}

TEXTS = [
    "", " ", "  ", "\n", " \n ", "a", "I'll say it's WE'RE there, don't you'D", "hello world", "  two  spaces   three ",
    "tab\tand\r\nlines\n\n\n  indented\n\tmore", "numbers 1 12 123 1234 123456789 3.14 ½ ²³ ٣٤٥ 一二三",
    "naïve café, Ελληνικά, русский язык, עברית, العربية, हिन्दी भाषा, ไทย", "漢字とひらがなとカタカナ。中文字符,混合english",
    "한국어 텍스트", "emoji 😀👩‍👩‍👧 flags 🇩🇪!", "e\u0301 A\u030a \u1100\u1161\u11a8 q\u0307\u0323 \u212b \u0958 \u2126",
    "math ∑∫√ €5 £7 -- ... ___ ***", "x=foo(bar[1], 'baz')  # comment\n    return x\n",
    "\u00a0nbsp\u2003em\u3000wide \u2028sep\u0085nel", "<|begin|>special<|end|> text<|end|><|end|>", "ſtrange 'ſ '\u017f", "a\u0000b\u007f",
    "trailing space ", "  leading", "mixed  \n  \n x", "ALLCAPS camelCase snake_case kebab-case", "\ufeffbom \u200bzero",
]

# Marks that are younger than the library's Unicode, a token that is normalized, ends of lines.
MORE_TEXTS = ["a\u0898\u0338 \u0c15\u0c3c\u0338", "5 \u212b \u00c5 A\u030a", "end  \nof  \r\nlines  ", "a\u0334\u0327b"]


def random_texts(count):
    chance = random.Random(5)
    alphabet = list("abcXYZ'\" \t\n\r.,;!?0123456789_-+/\\") + list("éßñøАбв中文あア한ｗ😀½٣\u0301\u0327\u00a0\u3000\u2028\u200d")
    words = ["'s", "'ll", "  ", "\n\n", " the", "<|end|>", "e\u0301", "123"]
    return ["".join(chance.choice(alphabet + words) for _ in range(chance.randint(1, 40))) for _ in range(count)]


def main():
    texts = TEXTS + random_texts(150) + MORE_TEXTS
    for name, (normalizer, pre_tokenizer, ignore_merges) in FAMILIES.items():
        tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=450, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                      show_progress=False, min_frequency=2)
        tokenizer.train_from_iterator(TEXTS * 3, trainer)
        tokenizer.add_special_tokens([AddedToken("<|begin|>", special=True), AddedToken("<|end|>", special=True)])
        tokenizer.add_tokens([AddedToken("café", normalized=True)])
        if name == "digits":
            tokenizer.add_tokens([AddedToken("\u212b", normalized=True)])
            ends = [(token, tokenizer.token_to_id(token)) for token in ("<|begin|>", "<|end|>")]
            tokenizer.post_processor = processors.Sequence(
                [processors.ByteLevel(), processors.TemplateProcessing(single="<|begin|> $A <|end|>", special_tokens=ends)])
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
        if name != "digits":
            with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
                bos = None if name == "qwen" else "<|begin|>" if name == "llama3" else {"content": "<|begin|>"}
                json.dump({"bos_token": bos, "eos_token": "<|end|>"}, file)
        with open(os.path.join(folder, "expected.jsonl"), "w", encoding="utf-8") as file:
            for text in texts:
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                file.write(json.dumps({"text": text, "ids": ids}, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
