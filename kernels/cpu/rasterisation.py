"""Triangles drawn into a picture: those that face the viewer, the nearest at each pixel, colours even between their corners."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["draw_triangles"]

_MINIMUM_AREA = 1e-9  # twice, in pixels


@njit(nogil=True, cache=True)
def draw_triangles(x, y, depth, colour, triangles, image, nearest):
    """Draw triangles into `image`.

    Parameters
    ----------
    x, y : (v,) float32, pixels from the left upper corner of the picture. depth : (v,) float32, greater is nearer.
    colour : (v, 3) float32, 0 to 255. triangles : (t, 3) uint32, counter-clockwise as the viewer sees them; others are left out, and so are
        those with corners that are no numbers.
    image : (height, width, 3) uint8. nearest : (height, width) float32, the depth of what is there; both are written to.
    """
    height, width = nearest.shape
    for t in range(len(triangles)):
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        x0, y0, x1, y1, x2, y2 = np.float64(x[i]), np.float64(y[i]), np.float64(x[j]), np.float64(y[j]), np.float64(x[k]), np.float64(y[k])
        # Rows count downwards, so that what is counter-clockwise has a negative area.
        area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        if not -np.inf < area < -_MINIMUM_AREA:
            continue
        low_x, high_x = min(x0, x1, x2), max(x0, x1, x2)
        low_y, high_y = min(y0, y1, y2), max(y0, y1, y2)
        if not (high_x > 0.0 and low_x < width and high_y > 0.0 and low_y < height):
            continue
        first_x, last_x = int(np.ceil(max(low_x, 0.0) - 0.5)), int(np.floor(min(high_x, np.float64(width)) - 0.5))
        first_y, last_y = int(np.ceil(max(low_y, 0.0) - 0.5)), int(np.floor(min(high_y, np.float64(height)) - 0.5))
        part = 1.0 / area
        step_0, step_1 = (y1 - y2) * part, (y2 - y0) * part
        d0, d1, d2 = depth[i], depth[j], depth[k]
        for row in range(max(first_y, 0), min(last_y, height - 1) + 1):
            at_y, at_x = row + 0.5, max(first_x, 0) + 0.5
            a = ((x1 - at_x) * (y2 - at_y) - (x2 - at_x) * (y1 - at_y)) * part
            b = ((x2 - at_x) * (y0 - at_y) - (x0 - at_x) * (y2 - at_y)) * part
            for column in range(max(first_x, 0), min(last_x, width - 1) + 1):
                c = 1.0 - a - b
                if a >= 0.0 and b >= 0.0 and c >= 0.0:
                    here = np.float32(a * d0 + b * d1 + c * d2)
                    if here > nearest[row, column]:
                        nearest[row, column] = here
                        for channel in range(3):
                            value = a * colour[i, channel] + b * colour[j, channel] + c * colour[k, channel]
                            image[row, column, channel] = np.uint8(min(max(value, 0.0), 255.0))
                a += step_0
                b += step_1
