"""Every choice about a figure as data: options, themes, views, and the one place where their layers meet."""
