"""Training steps of a PyTorch program on the GPU, whose length is known by what bounds it.

The text of a module: a process that measures one of them begins with it, and calls `steps[name]`.
"""

STEPS = """
import torch

def encoder(layers, rows, passes=1):
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True, dropout=0.0)
    net = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda().bfloat16()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=True)
    batch = torch.randn(rows, 512, 1024, device="cuda", dtype=torch.bfloat16)
    def step():
        for _ in range(passes): net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    return step

def linear(layers):
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(layers)]).cuda().bfloat16()
    return net, torch.randn(64, 512, device="cuda", dtype=torch.bfloat16)

def launching(layers):
    net, batch = linear(layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    def step():
        net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    return step

def capture(work):
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3): work()
    torch.cuda.current_stream().wait_stream(aside)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured): work()
    return captured

def graph():
    net, batch = linear(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    def passes():
        optimizer.zero_grad(set_to_none=False)
        net(batch).float().pow(2).mean().backward()
    captured = capture(passes)
    def step():
        captured.replay()
        optimizer.step()
    return step

def whole():
    net, batch = linear(64)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    def all_of_it():
        net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    return capture(all_of_it).replay

steps = {
    "launches": lambda: launching(48),
    "launches-long": lambda: launching(624),
    "short": lambda: encoder(2, 20),
    "transformer": lambda: encoder(8, 52),
    "accumulating": lambda: encoder(8, 52, 6),
    "graph": graph,
    "whole": whole,
}
"""
WORDS = {
    "launches": "many small kernels, bound by their launches",
    "launches-long": "the same, 13 times as many",
    "short": "a small transformer, bound by the GPU",
    "transformer": "a larger one, bound by the GPU",
    "accumulating": "the same, six passes a step",
    "graph": "many small kernels, passes as a CUDA graph, then the optimizer",
    "whole": "all of it as a CUDA graph",
}
