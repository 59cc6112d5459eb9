"""The boxes of a Mandelbrot image as native actors: `runtime.mandelbrot`.

A strip of the image is a buffer that is handed from box to box. A point has four numbers in it: its
two coordinates, the square of the last value's size, and the count of iterations.
"""

from libc.math cimport log2
from libc.stdint cimport int64_t

from callboard.core.memory.buffer cimport Buffer
from callboard.native cimport ActorRef, Message, NativeActor

cdef enum:
    NUMBERS = 4  # of a point

cdef double LEFT = -2.0, RIGHT = 0.5, BOTTOM = -1.25, TOP = 1.25


cdef class Box(NativeActor):
    """Work on a strip and hand it on."""

    cdef ActorRef next
    cdef int64_t width, height, strips, most  # of the image, and iterations

    def __init__(self, ActorRef next, int64_t width, int64_t height, int64_t strips, int64_t most):
        self.next = next
        self.width = width
        self.height = height
        self.strips = strips
        self.most = most

    cdef void work(self, double* points, int64_t count) noexcept nogil:
        pass

    cdef void receive(self, Message* message) noexcept nogil:
        cdef Buffer* strip = <Buffer*>message.first
        self.work(<double*>strip.data, strip.size // (NUMBERS * sizeof(double)))
        self.forward(self.next, message)


cdef class Plane(Box):
    """Make the points of the strip whose number comes."""

    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t strip = message.integer, rows = self.height // self.strips, row, column
        cdef Buffer* made
        cdef double* point
        with gil:
            made = Buffer.allocate(rows * self.width * NUMBERS * sizeof(double))
        point = <double*>made.data
        for row in range(strip * rows, (strip + 1) * rows):
            for column in range(self.width):
                point[0] = LEFT + (RIGHT - LEFT) * column / self.width
                point[1] = BOTTOM + (TOP - BOTTOM) * row / self.height
                point[2] = point[3] = 0
                point += NUMBERS
        self.send_buffer(self.next, made)
        made.drop()


cdef class EscapeValues(Box):
    """Find the size of the first value of each point that has escaped."""

    cdef void work(self, double* points, int64_t count) noexcept nogil:
        cdef double size
        for _ in range(count):
            iterate(points[0], points[1], self.most, &size)
            points[2] = size
            points += NUMBERS


cdef class EscapeTimes(Box):
    """Find after how many iterations each point has escaped."""

    cdef void work(self, double* points, int64_t count) noexcept nogil:
        cdef double size
        for _ in range(count):
            points[3] = iterate(points[0], points[1], self.most, &size)
            points += NUMBERS


cdef class Counts(Box):
    """Make the counts smooth."""

    cdef void work(self, double* points, int64_t count) noexcept nogil:
        for _ in range(count):
            if points[2] > 4:
                points[3] += 1 - log2(log2(points[2]) / 2)
            points += NUMBERS


cdef class Splitter(NativeActor):
    """Hand each chain the number of its strip."""

    cdef list first

    def __init__(self, first):
        self.first = first

    cdef void receive(self, Message* message) noexcept nogil:
        with gil:
            for strip, ref in enumerate(self.first):
                ref.tell(strip)


cdef class Collector(NativeActor):
    """Hand all strips on."""

    cdef ActorRef next

    def __init__(self, ActorRef next not None):
        self.next = next

    cdef void receive(self, Message* message) noexcept nogil:
        self.forward(self.next, message)


cdef class Merge(NativeActor):
    """Sum the image up; call `done` with the sum when all strips are there."""

    cdef double total
    cdef int64_t left
    cdef object done

    def __init__(self, int64_t strips, done):
        self.left = strips
        self.done = done

    cdef void receive(self, Message* message) noexcept nogil:
        cdef Buffer* strip = <Buffer*>message.first
        cdef double* points = <double*>strip.data
        cdef int64_t i
        cdef double sum = 0
        for i in range(strip.size // (NUMBERS * sizeof(double))):
            sum += points[NUMBERS * i + 3]
        self.total += sum
        self.left -= 1
        if self.left == 0:
            with gil:
                self.done(self.total)


cdef int64_t iterate(double x0, double y0, int64_t most, double* size) noexcept nogil:
    """Return after how many iterations a point has escaped, `most` if it has not, and how far."""
    cdef double x = 0, y = 0, next_x
    cdef int64_t i
    for i in range(most):
        next_x = x * x - y * y + x0
        y = 2 * x * y + y0
        x = next_x
        if x * x + y * y > 4:
            break
    else:
        i = most
    size[0] = x * x + y * y
    return i
