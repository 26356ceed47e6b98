"""Colours as text and as numbers: parsing, contrast, perceptual distance, colour-blind simulation, ramps.

A colour is a CSS name, `#rgb`, `#rrggbb` or `#rrggbbaa` (the alpha is ignored), or three integers 0-255; every
function takes either form. Knows nothing of themes or roles: which colour means what is data elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from torchlens.base.errors import fail, nearest

RGB = tuple[int, int, int]
Triple = tuple[float, float, float]

DARK_TEXT, LIGHT_TEXT = "#111111", "#ffffff"

# CSS Color Module Level 4, section 6.1.
_CSS_NAMES = """
    aliceblue:f0f8ff antiquewhite:faebd7 aqua:00ffff aquamarine:7fffd4 azure:f0ffff beige:f5f5dc bisque:ffe4c4
    black:000000 blanchedalmond:ffebcd blue:0000ff blueviolet:8a2be2 brown:a52a2a burlywood:deb887 cadetblue:5f9ea0
    chartreuse:7fff00 chocolate:d2691e coral:ff7f50 cornflowerblue:6495ed cornsilk:fff8dc crimson:dc143c cyan:00ffff
    darkblue:00008b darkcyan:008b8b darkgoldenrod:b8860b darkgray:a9a9a9 darkgreen:006400 darkgrey:a9a9a9
    darkkhaki:bdb76b darkmagenta:8b008b darkolivegreen:556b2f darkorange:ff8c00 darkorchid:9932cc darkred:8b0000
    darksalmon:e9967a darkseagreen:8fbc8f darkslateblue:483d8b darkslategray:2f4f4f darkslategrey:2f4f4f
    darkturquoise:00ced1 darkviolet:9400d3 deeppink:ff1493 deepskyblue:00bfff dimgray:696969 dimgrey:696969
    dodgerblue:1e90ff firebrick:b22222 floralwhite:fffaf0 forestgreen:228b22 fuchsia:ff00ff gainsboro:dcdcdc
    ghostwhite:f8f8ff gold:ffd700 goldenrod:daa520 gray:808080 green:008000 greenyellow:adff2f grey:808080
    honeydew:f0fff0 hotpink:ff69b4 indianred:cd5c5c indigo:4b0082 ivory:fffff0 khaki:f0e68c lavender:e6e6fa
    lavenderblush:fff0f5 lawngreen:7cfc00 lemonchiffon:fffacd lightblue:add8e6 lightcoral:f08080 lightcyan:e0ffff
    lightgoldenrodyellow:fafad2 lightgray:d3d3d3 lightgreen:90ee90 lightgrey:d3d3d3 lightpink:ffb6c1
    lightsalmon:ffa07a lightseagreen:20b2aa lightskyblue:87cefa lightslategray:778899 lightslategrey:778899
    lightsteelblue:b0c4de lightyellow:ffffe0 lime:00ff00 limegreen:32cd32 linen:faf0e6 magenta:ff00ff maroon:800000
    mediumaquamarine:66cdaa mediumblue:0000cd mediumorchid:ba55d3 mediumpurple:9370db mediumseagreen:3cb371
    mediumslateblue:7b68ee mediumspringgreen:00fa9a mediumturquoise:48d1cc mediumvioletred:c71585
    midnightblue:191970 mintcream:f5fffa mistyrose:ffe4e1 moccasin:ffe4b5 navajowhite:ffdead navy:000080
    oldlace:fdf5e6 olive:808000 olivedrab:6b8e23 orange:ffa500 orangered:ff4500 orchid:da70d6 palegoldenrod:eee8aa
    palegreen:98fb98 paleturquoise:afeeee palevioletred:db7093 papayawhip:ffefd5 peachpuff:ffdab9 peru:cd853f
    pink:ffc0cb plum:dda0dd powderblue:b0e0e6 purple:800080 rebeccapurple:663399 red:ff0000 rosybrown:bc8f8f
    royalblue:4169e1 saddlebrown:8b4513 salmon:fa8072 sandybrown:f4a460 seagreen:2e8b57 seashell:fff5ee
    sienna:a0522d silver:c0c0c0 skyblue:87ceeb slateblue:6a5acd slategray:708090 slategrey:708090 snow:fffafa
    springgreen:00ff7f steelblue:4682b4 tan:d2b48c teal:008080 thistle:d8bfd8 tomato:ff6347 turquoise:40e0d0
    violet:ee82ee wheat:f5deb3 white:ffffff whitesmoke:f5f5f5 yellow:ffff00 yellowgreen:9acd32
"""
_NAMED = {name: digits for name, _, digits in (entry.partition(":") for entry in _CSS_NAMES.split())}

_HEX = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)

# Bjoern Ottosson, "A perceptual color space for image processing" (2020): linear sRGB -> LMS, LMS^(1/3) -> Lab.
_RGB_TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LMS_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_LAB_TO_LMS = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_LMS_TO_RGB = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)

# Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009;
# severity 1.0, on linear RGB.
_DEFICIENCY = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


# -- text and numbers
def is_color(text: object) -> bool:
    """Whether this is the text of one colour."""
    return isinstance(text, str) and (text.strip().lower() in _NAMED or bool(_HEX.fullmatch(text.strip())))


def parse(color: str | RGB) -> RGB:
    """Red, green and blue, 0-255. Raises InvalidArgumentError[color_invalid]."""
    if not isinstance(color, str):
        return color
    text = color.strip().lower()
    digits = _NAMED.get(text) or (text[1:] if _HEX.fullmatch(text) else "")
    if not digits:
        close = [name for name in nearest(text, _NAMED) if name != text]
        hint = f"use {close[0]!r} or #rrggbb" if close else "write #rgb, #rrggbb or a CSS colour name"
        fail("color_invalid", f"{color!r} is not a colour", fix=hint, got=color)
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    return int(digits[0:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def to_hex(color: str | RGB) -> str:
    """`#rrggbb`, lower case."""
    return "#{:02x}{:02x}{:02x}".format(*parse(color))


def fill_colors(fill: str) -> tuple[str, ...]:
    """The colours of a fill: one, or those of a list such as `a:b` or `a;0.3:b`."""
    return tuple(part.partition(";")[0] for part in fill.split(":") if part)


# -- contrast
def luminance(color: str | RGB) -> float:
    """Relative luminance, 0 black to 1 white. Source: WCAG 2.2, relative luminance."""
    red, green, blue = _linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str | RGB, second: str | RGB) -> float:
    """Contrast ratio, 1 to 21, the same in both orders. Source: WCAG 2.2, contrast ratio."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def text_on(fill: str, preferred: str, threshold: float = 4.5) -> str:
    """Colour for text on a fill: the preferred one where it reads well, else the better of near-black and white.

    fill: a colour or a list of colours; the text has to read well on each of them.
    """
    colors = fill_colors(fill)

    def worst(text: str) -> float:
        return min(contrast(text, color) for color in colors)

    return to_hex(preferred) if worst(preferred) >= threshold else max((DARK_TEXT, LIGHT_TEXT), key=worst)


# -- perception
def oklab(color: str | RGB) -> Triple:
    """OKLab coordinates: lightness 0-1, green-red, blue-yellow."""
    return _times(_LMS_TO_LAB, _cube_root(_times(_RGB_TO_LMS, _linear(color))))


def oklab_distance(first: str | RGB, second: str | RGB) -> float:
    """Euclidean distance in OKLab; black to white is 1."""
    return _distance(oklab(first), oklab(second))


def simulate(color: str | RGB, kind: str, severity: float = 1.0) -> RGB:
    """The colour as seen with a colour vision deficiency.

    kind: protan, deutan or tritan. severity: 0 unchanged, 1 full; between them the two are blended in linear light,
    an approximation of the published tables.
    """
    if kind not in _DEFICIENCY:
        fail("color_vision_invalid", f"{kind!r} is not a colour vision deficiency", allowed=_DEFICIENCY, got=kind)
    seen, normal = _times(_DEFICIENCY[kind], _linear(color)), _linear(color)
    red, green, blue = (_byte(severity * s + (1 - severity) * n) for s, n in zip(seen, normal, strict=True))
    return red, green, blue


class Ramp:
    """A continuous colour scale through a list of stops.

    Neighbouring stops are blended in OKLab; each stop sits at its share of the summed OKLab length of the list, so
    equal steps along the scale look equally large.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if len(stops) < 2:
            fail("color_ramp_invalid", f"a ramp needs at least two colours, got {len(stops)}", got=tuple(stops))
        self.stops = tuple(to_hex(stop) for stop in stops)
        self._points = tuple(oklab(stop) for stop in self.stops)
        lengths = [_distance(a, b) for a, b in pairwise(self._points)]
        total = sum(lengths) or 1.0
        self._places = [sum(lengths[:i]) / total for i in range(len(self.stops))]

    def at(self, t: float) -> str:
        """Colour at a place, 0 the first stop, 1 the last; places outside are clamped."""
        if t >= 1:
            return self.stops[-1]
        i = max((i for i, place in enumerate(self._places[:-1]) if place <= t), default=0)
        span = self._places[i + 1] - self._places[i]
        share = min(max((t - self._places[i]) / span, 0.0), 1.0) if span > 0 else 0.0
        low, high = self._points[i], self._points[i + 1]
        return _from_oklab(tuple(a + share * (b - a) for a, b in zip(low, high, strict=True)))

    def cells(self, count: int) -> list[str]:
        """Colours of that many equal steps, both ends included."""
        return [self.at(i / max(count - 1, 1)) for i in range(count)]


# -- arithmetic
def _linear(color: str | RGB) -> Triple:
    red, green, blue = (_decode(channel / 255) for channel in parse(color))
    return red, green, blue


def _decode(value: float) -> float:
    # IEC 61966-2-1 (sRGB) transfer function.
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _byte(value: float) -> int:
    value = min(max(value, 0.0), 1.0)
    coded = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
    return round(coded * 255)


def _from_oklab(lab: Sequence[float]) -> str:
    red, green, blue = _times(_LMS_TO_RGB, [part**3 for part in _times(_LAB_TO_LMS, lab)])
    return to_hex((_byte(red), _byte(green), _byte(blue)))


def _cube_root(values: Sequence[float]) -> Triple:
    a, b, c = (max(value, 0.0) ** (1 / 3) for value in values)
    return a, b, c


def _times(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> Triple:
    a, b, c = (sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix)
    return a, b, c


def _distance(first: Sequence[float], second: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5
