def write(kept):
    pass
