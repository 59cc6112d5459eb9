from callboard.remote.wire.frames import Buffer

DICTIONARY: int
BATCH: int

def messages_in(data: Buffer, at: int = 0) -> list[tuple[int, int, int]]: ...
