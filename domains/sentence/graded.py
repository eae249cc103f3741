"""The embedded sentences: generated pairs with graded similarity, and a tiny BERT."""

from functools import cache
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from contrastbench.domains.sentence.checkpoint import Checkpoint
from contrastbench.domains.sentence.data import Pairs

SEED = 20232
SENTENCES, GRADED_PAIRS = 4096, 600
SYLLABLES = (
    *("ba", "ce", "di", "fo", "gu", "ka", "le", "mi"),
    *("no", "pu", "ra", "se", "ti", "vo", "zu"),
)
# what a sentence says in 5 words out of 300, and words that say nothing
SLOTS, WORDS_PER_SLOT, FILLERS = (5, 60, 3)
SPECIAL_TOKENS = {  # in the order of their numbers
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


@cache
def graded_pairs(part: str) -> Pairs:
    """Pairs (`dev` or `test`) that share 0 to 5 words with a meaning, the gold score.

    These words stand in any order among 4 to 19 fillers, which are drawn for each sentence anew and
    are far more frequent: an encoder must learn which words tell sentences apart.

    >>> graded_pairs("dev").gold[:6]
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    rng = np.random.default_rng([SEED, ("dev", "test").index(part)])
    gold = [i % (SLOTS + 1) for i in range(GRADED_PAIRS)]
    first, second = zip(*(draw_pair(shared, rng) for shared in gold), strict=True)
    return Pairs(part, list(first), list(second), [float(shared) for shared in gold])


@cache
def training_sentences() -> tuple[str, ...]:
    rng = np.random.default_rng([SEED, 2])
    return tuple(sentence(slot_words(rng), rng) for _ in range(SENTENCES))


def draw_pair(shared: int, rng: np.random.Generator) -> tuple[str, str]:
    first = slot_words(rng)
    other = (first + rng.integers(1, WORDS_PER_SLOT, SLOTS)) % WORDS_PER_SLOT  # in no slot the same
    second = np.where(rng.permutation(SLOTS) < shared, first, other)
    return sentence(first, rng), sentence(second, rng)


def slot_words(rng: np.random.Generator) -> Any:
    return rng.integers(WORDS_PER_SLOT, size=SLOTS)


def sentence(words: Any, rng: np.random.Generator) -> str:
    content = [spell(1 + slot * WORDS_PER_SLOT + int(word)) for slot, word in enumerate(words)]
    fillers = [f"{SYLLABLES[i]}n" for i in rng.integers(FILLERS, size=rng.integers(4, 20))]
    return " ".join(rng.permutation(content + fillers).tolist())


def spell(number: int) -> str:
    """A word of three syllables for a number.

    >>> spell(1), spell(300)
    ('babace', 'cekaba')
    """
    n = len(SYLLABLES)
    return SYLLABLES[number // n**2] + SYLLABLES[number // n % n] + SYLLABLES[number % n]


def tiny_checkpoint(seed: int) -> Checkpoint:
    config = BertConfig(
        vocab_size=len(tokenizer()),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Checkpoint(BertModel(config, add_pooling_layer=False), tokenizer(), None)


def tokenizer() -> PreTrainedTokenizerFast:
    made = with_words(
        models.WordPiece({token: i for i, token in enumerate(vocabulary())}, unk_token="[UNK]")
    )
    ends = [(token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    whole = "[CLS] $A [SEP]"
    made.post_processor = processors.TemplateProcessing(single=whole, special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=128, **SPECIAL_TOKENS)


@cache
def vocabulary() -> tuple[str, ...]:
    """Special tokens, then sorted pieces, since the trainer's order differs between processes."""
    special = list(SPECIAL_TOKENS.values())
    trainer = trainers.WordPieceTrainer(vocab_size=800, special_tokens=special, show_progress=False)
    made = with_words(models.WordPiece(unk_token="[UNK]"))
    made.train_from_iterator(training_sentences(), trainer)
    return (*special, *sorted(made.get_vocab().keys() - set(special)))


def with_words(model: models.Model) -> Tokenizer:
    made = Tokenizer(model)
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made
