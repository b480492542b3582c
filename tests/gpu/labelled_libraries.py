"""More programs as users of public libraries write them, for `labelled_runs`. Labels are fixed here, those of
`labelled_jax` too.

    python labelled_libraries.py NAME SECONDS

Each waits as those of `labelled_models` do. Those that train count their steps and samples, and print both at the end.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

if __name__ == "__main__":  # else only the labels are read, and this folder is on no path
    from labelled_loop import CPU, Clock, counted, device, small, wait_for_turn

# Name → (classes that are true of it, GPUs, seconds).
LIBRARIES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "trainer_gpt2": (("Compute", "MemoryBandwidth"), 1, 24),
    "peft_lora": (("Compute", "MemoryBandwidth"), 1, 22),
    "generate_one": (("HostBound",), 1, 18),
    "int8_products": (("Compute",), 1, 17),
    "graph_network": (("MemoryBandwidth",), 1, 20),
    "detection": (("HostBound",), 1, 22),
    "jax_donated": (("Compute",), 1, 24),
}


def trainer_gpt2(clock: Clock) -> None:
    """Transformers' Trainer: four passes a step, an evaluation after every fifth."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    wait_for_turn()
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

    wait_for_turn()
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

    wait_for_turn()
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

    wait_for_turn()
    width = small(8192, 64)
    weights = [torch.randint(-127, 127, (width, width), dtype=torch.int8, device=device()) for _ in range(8)]
    rows = torch.randint(-127, 127, (2 * width, width), dtype=torch.int8, device=device())
    with torch.inference_mode():
        while not clock.over():
            for weight in weights:
                torch._int_mm(rows, weight.t())
            if not CPU:
                torch.cuda.synchronize()


def graph_network(clock: Clock) -> None:
    """GraphSAGE of PyTorch Geometric on a whole random graph: gathers and scatters features."""
    import torch
    from torch_geometric.nn import GraphSAGE

    wait_for_turn()
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

    wait_for_turn()
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


if __name__ == "__main__":
    globals()[sys.argv[1]](Clock(float(sys.argv[2])))
