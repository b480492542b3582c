"""More programs as users of public libraries write them, for `labelled_runs`. Labels are fixed here, those of
`labelled_jax_libraries` too.

    python labelled_libraries.py NAME SECONDS

Each waits as those of `labelled_models` do, counts its steps and samples by itself, and prints them in the end.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

if __name__ == "__main__":  # else only the labels are read, and this folder is on no path
    from labelled_loop import CPU, Clock, counted, device, small, wait_for_line

# Name → (classes that are true of it, GPUs, seconds).
LIBRARIES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "trainer_gpt2": (("Compute", "MemoryBandwidth"), 1, 28),
    "peft_lora": (("Compute",), 1, 24),
    "generate_one": (("HostBound",), 1, 24),
    "int8_products": (("Compute",), 1, 22),
    "compiled_graphs": (("Compute", "MemoryBandwidth"), 1, 24),
    "graph_network": (("MemoryBandwidth",), 1, 24),
    "detection": (("HostBound",), 1, 28),
    "tokens_in_collate": (("InputBound",), 1, 24),
    "jax_neural_ode": (("HostBound",), 1, 28),
    "jax_donated": (("Compute",), 1, 24),
}


def trainer_gpt2(clock: Clock) -> None:
    """Transformers' Trainer: four passes a step, an evaluation after every fifth."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    wait_for_line()
    width, length = small(1024, 64), small(1024, 32)
    config = GPT2Config(n_layer=small(12, 2), n_embd=width, n_head=width // 64, n_positions=length)

    class Tokens(torch.utils.data.Dataset[Any]):
        def __init__(self, rows: int) -> None:
            self.rows = torch.randint(0, config.vocab_size, (rows, length))

        def __len__(self) -> int:
            return len(self.rows)

        def __getitem__(self, index: int) -> Any:
            return {"input_ids": self.rows[index], "labels": self.rows[index]}

    class UntilOver(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = clock.over()

    with tempfile.TemporaryDirectory() as folder:
        rows = small(8, 1)
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=1_000_000,
            per_device_train_batch_size=rows,
            per_device_eval_batch_size=rows,
            gradient_accumulation_steps=4,
            bf16=not CPU,
            use_cpu=CPU,
            eval_strategy="steps",
            eval_steps=5,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=GPT2LMHeadModel(config),
            args=arguments,
            train_dataset=Tokens(4096),
            eval_dataset=Tokens(4 * rows),
            callbacks=[UntilOver()],
        )
        trainer.train()
        counted(trainer.state.global_step, trainer.state.global_step * 4 * rows)


def peft_lora(clock: Clock) -> None:
    """Adapters of a Llama in bfloat16, whose activations are computed again in the backward pass."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    wait_for_line()
    width = small(2048, 64)
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=small(16, 2),
        num_attention_heads=width // 64,
        num_key_value_heads=max(width // 256, 1),
        vocab_size=small(32000, 128),
    )
    net = LlamaForCausalLM(config).to(device(), torch.bfloat16)
    net.gradient_checkpointing_enable()
    net.enable_input_require_grads()
    net = get_peft_model(net, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    net.train()
    optimizer = torch.optim.AdamW([one for one in net.parameters() if one.requires_grad], lr=1e-4)
    tokens = torch.randint(0, config.vocab_size, (small(8, 2), small(2048, 16)), device=device())
    steps = 0
    while not clock.over():
        net(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if steps % 5 == 0 and not CPU:
            torch.cuda.synchronize()
    counted(steps, steps * len(tokens))


def generate_one(clock: Clock) -> None:
    """A small Llama answers one question at a time, one token after another."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    wait_for_line()
    config = LlamaConfig(
        hidden_size=small(1024, 64),
        intermediate_size=small(2816, 64),
        num_hidden_layers=small(16, 2),
        num_attention_heads=small(16, 2),
        num_key_value_heads=small(4, 2),
        vocab_size=small(32000, 128),
    )
    net = LlamaForCausalLM(config).to(device(), torch.bfloat16).eval()
    asked = torch.randint(0, config.vocab_size, (1, 64), device=device())
    while not clock.over():
        net.generate(asked, attention_mask=torch.ones_like(asked), max_new_tokens=64, do_sample=False, pad_token_id=0)


def int8_products(clock: Clock) -> None:
    """A quantised model serves: products of 8-bit integers, no gradients."""
    import torch

    wait_for_line()
    width = small(8192, 64)
    weights = [torch.randint(-127, 127, (width, width), dtype=torch.int8, device=device()) for _ in range(8)]
    rows = torch.randint(-127, 127, (2 * width, width), dtype=torch.int8, device=device())
    with torch.inference_mode():
        while not clock.over():
            for weight in weights:
                torch._int_mm(rows, weight.t())
            if not CPU:
                torch.cuda.synchronize()


def compiled_graphs(clock: Clock) -> None:
    """torch.compile with CUDA graphs of a model of timm."""
    import timm
    import torch
    from torch.nn import functional

    wait_for_line()
    net = timm.create_model("deit_tiny_patch16_224" if CPU else "deit_base_patch16_224", pretrained=False).to(device())
    compiled = torch.compile(net, mode="reduce-overhead")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    x = torch.randn(small(128, 2), 3, 224, 224, device=device())
    y = torch.randint(0, 1000, (len(x),), device=device())
    steps = 0

    def step() -> None:
        nonlocal steps
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(device().type, torch.bfloat16):
            loss = functional.cross_entropy(compiled(x).float(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1

    for _ in range(5):  # compiled and captured before its time begins
        step()
    while steps % 5 or not clock.over():
        step()
    counted(steps, steps * len(x))


def graph_network(clock: Clock) -> None:
    """GraphSAGE of PyTorch Geometric on a whole random graph: gathers and scatters features."""
    import torch
    from torch_geometric.nn import GraphSAGE

    wait_for_line()
    nodes = small(1_000_000, 100)
    x = torch.randn(nodes, 128, device=device())
    edges = torch.randint(0, nodes, (2, small(10_000_000, 500)), device=device())
    y = torch.randint(0, 16, (nodes,), device=device())
    net = GraphSAGE(128, 128, num_layers=2, out_channels=16).to(device())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    steps = 0
    while not clock.over():
        torch.nn.functional.cross_entropy(net(x, edges), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if not CPU:
            torch.cuda.synchronize()
    counted(steps, steps * nodes)


def detection(clock: Clock) -> None:
    """torchvision's detector with two pictures a step: proposals are matched by many small kernels."""
    import torch
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    wait_for_line()
    net = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None).to(device())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    pictures = [torch.rand(3, 320, 320, device=device()) for _ in range(2)]
    boxes = torch.tensor([[20.0, 20.0, 120.0, 160.0], [60.0, 40.0, 300.0, 280.0]], device=device())
    targets = [{"boxes": boxes, "labels": torch.tensor([1, 2], device=device())} for _ in pictures]
    steps = 0
    while not clock.over():
        sum(net(pictures, targets).values()).backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    counted(steps, steps * len(pictures))


def tokens_in_collate(clock: Clock) -> None:
    """A tokenizer in the loader's own process, and a small model of it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from torch import nn
    from torch.utils.data import DataLoader

    wait_for_line()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    made = torch.Generator().manual_seed(0)
    words = ["".join(chr(97 + int(n)) for n in torch.randint(0, 26, (7,), generator=made)) for _ in range(3000)]
    picks = torch.randint(0, len(words), (64, 2000), generator=made)
    texts = [" ".join(words[int(n)] for n in row) for row in picks]
    tokenizer = Tokenizer(models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts[:4], trainers.BpeTrainer(vocab_size=2000, special_tokens=["?"]))

    def collate(indexes: list[int]) -> Any:
        # From another place each time, so that the tokenizer remembers no whole text.
        rows = [tokenizer.encode(texts[n % len(texts)][n % 997 :]).ids[:512] for n in indexes]
        return torch.tensor(rows)

    loader = DataLoader(range(10**9), batch_size=32, shuffle=False, collate_fn=collate)  # type: ignore[arg-type]
    batches: Iterator[Any] = iter(loader)
    net = nn.Sequential(nn.Embedding(2000, 256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 16)).to(device())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    steps = 0
    while not clock.over():
        net(next(batches).to(device())).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    counted(steps, steps * 32)


if __name__ == "__main__":
    globals()[sys.argv[1]](Clock(float(sys.argv[2])))
