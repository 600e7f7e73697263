"""Attention as it is built today: what a decoder keeps and computes, latents, tiles, windows and sinks."""
