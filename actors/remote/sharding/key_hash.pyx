"""A hash of keys that is the same in every process; `key_runs.pxd` says of what."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t

from callboard.remote.sharding.key_runs cimport (
    BYTES,
    DAY,
    DURATION,
    IDENTIFIER,
    LOCAL_TIME,
    NONE,
    NOT_A_NUMBER,
    NUMBER,
    TEXT,
    TIME,
    TUPLE,
    hash_double,
    hash_run,
    hash_word,
)

from callboard.core.text import safe_repr
from callboard.remote.errors import CodecError

cdef int DEEPEST = 64  # tuples in one another, as the codec has it

cdef object NAIVE = datetime(1970, 1, 1)
cdef object MICROSECOND = timedelta(microseconds=1)
cdef long FIRST_DAY = date(1970, 1, 1).toordinal()


cdef uint64_t hash_object(object key, int depth) except? 0:
    cdef bytes data
    cdef uint64_t part
    cls = type(key)
    if cls is int or cls is bool:
        return hash_word(NUMBER, hash(key))
    if cls is str:
        try:
            data = (<str>key).encode()
        except UnicodeEncodeError as error:
            raise CodecError(f"the key {safe_repr(key)} is no text: {error.reason}") from None
        return hash_run(TEXT, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    if key is None:
        return hash_run(NONE, NULL, 0)
    if cls is float:
        return hash_double(key)
    if cls is bytes:
        return hash_run(BYTES, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    if cls is tuple:
        if depth == DEEPEST:
            raise CodecError(f"a key has more than {DEEPEST} tuples in one another")
        run = bytearray()
        for item in <tuple>key:
            part = hash_object(item, depth + 1)
            run += (<const char*>&part)[:8]
        data = bytes(run)
        return hash_run(TUPLE, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return hash_rare(key, cls)


cdef uint64_t hash_rare(object key, object cls) except? 0:
    cdef bytes data
    if cls is Decimal:
        return hash_run(NOT_A_NUMBER, NULL, 0) if key.is_nan() else hash_word(NUMBER, hash(key))
    if cls is datetime:
        offset = key.utcoffset()
        if offset is None:
            return hash_word(LOCAL_TIME, (key.replace(tzinfo=None) - NAIVE) // MICROSECOND)
        return hash_word(TIME, (key.replace(tzinfo=None) - NAIVE - offset) // MICROSECOND)
    if cls is date:
        return hash_word(DAY, key.toordinal() - FIRST_DAY)
    if cls is timedelta:
        try:
            return hash_word(DURATION, key // MICROSECOND)
        except OverflowError:
            raise CodecError(f"{key!r} is too long for a key: it has 64 bits of microseconds") from None
    if cls is UUID:
        data = key.bytes
        return hash_run(IDENTIFIER, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    raise CodecError(
        f"a key is None, a number, str, bytes, datetime, date, timedelta, UUID, or a tuple of these, "
        f"not a {cls.__module__}.{cls.__qualname__}"
    )


def key_hash(key):
    """Return the hash of a key, below 2**64. Equal keys have one, and all NaN, too.

    Raises CodecError for anything but a key, which types exactly decide: an instance of a subclass may be equal to
    anything.
    """
    return hash_object(key, 0)
