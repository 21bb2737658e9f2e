"""Colours as people with any colour vision see them, and their CIEDE2000 distances, for tests of palettes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["VISIONS", "ciede2000", "lab", "linear"]

VISIONS: dict[str, NDArray[np.float64]] = {
    "full": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}
"""Matrices of linear RGB: Machado, Oliveira & Fernandes (2009), severity 1."""


def linear(colours: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return sRGB colours (n, 3), 0 to 255, as linear RGB."""
    part = colours / 255.0
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return linear RGB colours (n, 3) as CIELAB, white D65."""
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
    xyz = rgb @ to_xyz.T / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def ciede2000(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of CIELAB colours (…, 3): Sharma, Wu & Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0)
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    is_grey = c1 * c2 == 0
    apart = np.where(is_grey, 0, (h2 - h1 + 180) % 360 - 180)
    lightness, chroma, hue = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(apart / 2))
    l_mean, c_mean = (l1 + l2) / 2, (c1 + c2) / 2
    h_mean = np.where(is_grey, h1 + h2, h1 + apart / 2) % 360
    t = 1 - 0.17 * np.cos(np.radians(h_mean - 30)) + 0.24 * np.cos(np.radians(2 * h_mean))
    t += 0.32 * np.cos(np.radians(3 * h_mean + 6)) - 0.2 * np.cos(np.radians(4 * h_mean - 63))
    rotation = -2 * np.sqrt(c_mean**7 / (c_mean**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((h_mean - 275) / 25) ** 2))))
    lightness = lightness / (1 + 0.015 * (l_mean - 50) ** 2 / np.sqrt(20 + (l_mean - 50) ** 2))
    chroma, hue = chroma / (1 + 0.045 * c_mean), hue / (1 + 0.015 * c_mean * t)
    return np.sqrt(lightness**2 + chroma**2 + hue**2 + rotation * chroma * hue)
