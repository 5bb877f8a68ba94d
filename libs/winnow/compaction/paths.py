"""Paths in bullets: what tells a file tree from a list that happens to name files."""

from winnow.compaction.lines import INVISIBLE


def is_directory(body: str) -> bool:
    """Tell whether a bullet's text is one directory and nothing else: "src/", "`src/`:"."""
    path = body.strip(INVISIBLE).rstrip(":").strip("`*")
    return path.endswith("/") and not any(sign.isspace() for sign in path)


def is_path(body: str) -> bool:
    """Tell whether a bullet's text is one path, with at most a remark in brackets: then it claims no more than the tree does."""
    path, _, remark = body.strip(INVISIBLE).partition(" ")
    if remark and not (remark.startswith("(") and remark.endswith(")") and remark.find(")") == len(remark) - 1):
        return False
    path = path.strip("`*")
    return "/" in path or "." in path[1:-1]
