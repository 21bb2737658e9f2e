"""Rasterisation of triangles and points.

Triangles that face the viewer are drawn with a depth buffer and interpolated colours. Points are drawn as pixels, with the colour of the
most frequent group in each pixel, or as dots.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["count_points", "draw_dots", "draw_triangles", "shade_counts"]

_MINIMUM_AREA = 1e-9  # twice the area, in square pixels, below which a triangle is skipped


@njit(nogil=True, cache=True)
def draw_triangles(x, y, depth, colour, triangles, image, nearest):
    """Draw triangles into an image.

    Parameters
    ----------
    x, y : (v,) float32
        Coordinates of the vertices in pixels from the upper left corner of the image.
    depth : (v,) float32
        Depth of the vertices; larger values are nearer.
    colour : (v, 3) float32
        Colours of the vertices, 0 to 255.
    triangles : (t, 3) uint32
        Corners, counter-clockwise for triangles that face the viewer. Triangles that face away, or have a NaN, are not drawn.
    image : (height, width, 3) uint8
        Image, which is updated.
    nearest : (height, width) float32
        Depth of the nearest surface in each pixel, which is updated.
    """
    height, width = nearest.shape
    for t in range(len(triangles)):
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        x0, y0, x1, y1, x2, y2 = np.float64(x[i]), np.float64(y[i]), np.float64(x[j]), np.float64(y[j]), np.float64(x[k]), np.float64(y[k])
        # Row indices increase downwards, so counter-clockwise triangles have a negative area.
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


@njit(nogil=True, cache=True)
def count_points(x, y, group, is_shown, x_range, y_range, pixel, counts):
    """Count the points of each group in each pixel, and write the pixel of each point; return the number of visible points.

    Parameters
    ----------
    x, y : (n,) float32
        Coordinates of the points.
    group : ndarray of uint8, shape (n,)
        Group of each point.
    is_shown : (g,) bool
        True for visible groups.
    x_range, y_range : (float, float)
        Coordinates at the left and right edge, and at the bottom and top edge.
    pixel : (n,) int32
        Output; row-major index of the pixel of each point, -1 if outside or hidden.
    counts : (height, width, g) uint16
        Output, initially 0; counts saturate.
    """
    height, width, _ = counts.shape
    across, up = width / (x_range[1] - x_range[0]), height / (y_range[1] - y_range[0])
    n = 0
    for i in range(len(x)):
        column, row = int(np.floor((x[i] - x_range[0]) * across)), int(np.floor((y_range[1] - y[i]) * up))
        pixel[i] = -1
        if is_shown[group[i]] and 0 <= column < width and 0 <= row < height:
            n += 1
            pixel[i] = row * width + column
            counts[row, column, group[i]] = min(np.int64(counts[row, column, group[i]]) + 1, 65535)
    return n


@njit(nogil=True, cache=True)
def shade_counts(counts, shades, picture):
    """Set the shade of each pixel by its most frequent group (of equal ones, the last) and its number of points.

    Parameters
    ----------
    counts : (height, width, g) uint16
        From `count_points`.
    shades : (g, k) uint32
        Shades of a group for 0, 1, … points; the last shade is for more points.
    picture : (height, width) uint32
        Output; shade of each pixel.
    """
    height, width, n_groups = counts.shape
    most = shades.shape[1] - 1
    for row in range(height):
        for column in range(width):
            total, best = np.int64(counts[row, column, 0]), 0
            for group in range(1, n_groups):
                total += counts[row, column, group]
                if counts[row, column, group] > 0 and counts[row, column, group] >= counts[row, column, best]:
                    best = group
            picture[row, column] = shades[best, min(total, most)]


@njit(nogil=True, cache=True)
def draw_dots(pixel, group, shades, radius, picture):
    """Draw a dot for each point in the last shade of its group; later groups are in front.

    Parameters
    ----------
    pixel
        See `count_points`.
    group : ndarray of uint8, shape (n,)
        Group of each point.
    radius
        Radius of a dot in pixels.
    shades, picture
        See `shade_counts`.
    """
    height, width = picture.shape
    n_groups, n_shades = shades.shape
    reach = int(np.ceil(radius))
    for front in range(n_groups):
        for i in range(len(pixel)):
            if pixel[i] >= 0 and group[i] == front:
                row, column = pixel[i] // width, pixel[i] % width
                for at_row in range(max(0, row - reach), min(height, row + reach + 1)):
                    for at in range(max(0, column - reach), min(width, column + reach + 1)):
                        if (at_row - row) ** 2 + (at - column) ** 2 <= radius * radius:
                            picture[at_row, at] = shades[front, n_shades - 1]
