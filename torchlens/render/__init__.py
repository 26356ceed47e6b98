"""Turns a finished scene into files: DOT text, layout engines, and the SVG, PNG and PDF writers."""
