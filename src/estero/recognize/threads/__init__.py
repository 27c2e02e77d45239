"""One question to one query, answered by several threads of this process: by ranges or by partition keys."""
