"""Each message to the routee of its key."""

from functools import partial

from libc.stdint cimport int64_t, uint64_t

from callboard.routers.router cimport Routee, Router


cdef Py_ssize_t place_of(uint64_t key, Py_ssize_t places) noexcept:
    """Return the place of a key's hash among so many: jump consistent hash.

    Lamping and Veach, "A fast, minimal memory, consistent hash algorithm" (2014), figure 1. It takes no memory, and
    some ln(places) steps. With one place more, one key of so many moves, and goes to the new place. A ring or
    rendezvous hashing could give up any place; a router gives up the last ones only.
    """
    cdef int64_t place = -1
    cdef int64_t next_place = 0
    while next_place < places:
        place = next_place
        key = key * <uint64_t>2862933555777941757 + 1
        next_place = <int64_t>((place + 1) * (<double>(<int64_t>1 << 31) / <double>((key >> 33) + 1)))
    return place


cdef class KeyRouter(Router):
    """Sends each message to the ref that has its key. Safe in every thread.

    Messages of a key that one sender sent are handled in their order, as long as the number of refs is the same. A
    key has the same place in every process. With n refs in place of n - 1, one key of n moves to the new one. A
    message that is sent after a resize may be handled before those that the key's ref of before has still to handle.
    """

    cdef object hash_of_row

    def __init__(self, refs, by):
        """`by` is a field's name, several names, or a function of the message. Raises ConfigError for another."""
        from callboard.remote.sharding.keys import ShardKey

        Router.__init__(self, refs)
        self.hash_of_row = ShardKey(by, 1).hash_of_row

    @classmethod
    def spawn(cls, spawner, actor, /, *args, by, routees=None, elastic=None, name=None, **kwargs):
        """As `RoundRobinRouter.spawn`, with `by` as in KeyRouter(). A replaced actor leaves its keys to the next."""
        from callboard.routers.family import spawn_family

        return spawn_family(partial(cls, by=by), spawner, actor, args, kwargs, routees, elastic, name, False, by=by)

    def of_key(self, key):
        """Return the ref of a key. Raises CodecError for anything but a key."""
        from callboard.remote.sharding.key_hash import key_hash

        routees = self.routees_now()
        return (<Routee>routees[place_of(key_hash(key), len(routees))]).recipient

    cdef uint64_t key_of(self, message) except? 0:
        return self.hash_of_row(message)

    cdef Routee pick(self, uint64_t key):
        return <Routee>self.routees[place_of(key, len(self.routees))]
