"""What a question to the lake cannot be answered for."""


class LakeReadError(Exception):
    """The lake cannot be read so: what is wrong and what to do."""
