#!/usr/bin/python3
"""Write the weighted mean of checkpoints.   blend.py OUT.pt ONE.pt 0.88 OTHER.pt 0.12"""
import sys, torch

out, *rest = sys.argv[1:]
total = None
for path, weight in zip(rest[::2], map(float, rest[1::2])):
    checkpoint = torch.load(path)
    total = {k: v * weight + (total[k] if total else 0) for k, v in checkpoint['model'].items()}
torch.save({'cfg': checkpoint['cfg'], 'model': total}, out)
