"""An actor's start: its object is made, and its hook runs."""

from cpython.object cimport PyObject, PyObject_GenericSetAttr

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.thread_locals cimport ActorContext
from callboard._inside.life.failure cimport fail_start
from callboard._inside.sending.actor_cell cimport cell_of
from callboard._inside.sending.ref cimport FRESH, LIVE, RESTARTING, STOPPING, ActorRef, Recipe
from callboard._inside.sending.state cimport Watches
from callboard._inside.sending.stored_envelope cimport stopped
from callboard.core.asserting cimport holds


cdef extern from "Python.h":
    int PyCoro_CheckExact(PyObject* object)


cdef int make(ActorRef ref, Recipe recipe, ActorContext* context) except -1:
    """Make the object so that it knows its ref when its `__init__` begins."""
    if recipe.native:
        assert holds(context.constructing == NULL)
        context.constructing = <void*>ref
        try:
            ref.instance = recipe.cls(*recipe.args, **recipe.kwargs)
        finally:
            context.constructing = NULL
    else:
        instance = recipe.cls.__new__(recipe.cls, *recipe.args, **recipe.kwargs)
        # Generic: the __setattr__ of a class, such as a frozen dataclass, is not called.
        PyObject_GenericSetAttr(instance, "_callboard_ref", ref)
        instance.__init__(*recipe.args, **recipe.kwargs)
        ref.instance = instance
    return 0


cdef int set_first_handler(ActorRef ref, Recipe recipe) except -1:
    """Have the class's `receive` handle messages, unless `__init__` chose another by become(): then it
    is what unbecome() goes back to."""
    first, bound = recipe.receive, False
    if recipe.native:
        bound = True
    elif first is None:
        first, bound = ref.instance.receive, True
    if ref.runtime.spans is not None and not (recipe.native or recipe.many):
        first = ref.runtime.spans.around(ref, first)
    if ref.extra is not None and ref.extra.behaviours:
        ref.extra.behaviours[0] = (first, bound)
    else:
        ref.handler, ref.bound = first, bound
    return 0


cdef object construct(ActorRef ref, Context* context):
    """Make the user's object, and return the coroutine of its hook, or None.

    A failure is the actor's, and goes to its supervisor.
    """
    cdef Recipe recipe = ref.recipe
    assert holds(ref.phase == FRESH and ref.instance is None and ref.handler is None)
    try:
        make(ref, recipe, <ActorContext*>context)
        cell_of(ref).object = <void*>ref.instance
        set_first_handler(ref, recipe)
        ref.phase = LIVE
        if recipe.starts:
            started = ref.instance.on_start()
            if PyCoro_CheckExact(<PyObject*>started):
                if recipe.runs or recipe.native:
                    started.close()
                    raise TypeError(f"{ref._short_path}: on_start() returned a coroutine, which would not be awaited")
                return started
    except BaseException as error:
        ref.phase = FRESH
        fail_start(ref, error)
    else:
        note_started(ref)
    return None


cdef void note_started(ActorRef ref) noexcept:
    """Complete the futures of `ref.ready`: the actor's hook is through."""
    ref.starting = False
    cdef Watches watches = ref.extra.watches if ref.extra is not None else None
    if watches is not None and watches.starts is not None:
        futures, watches.starts = watches.starts, None
        for future in futures:
            (<Future>future).complete(ref, None)


cdef void promise_start(ActorRef ref, Future future) noexcept:
    """Complete a future of `ref.ready` when the actor has started, or can no longer start."""
    cdef Watches watches
    if ref.phase >= STOPPING:
        future.complete(None, stopped(ref, ref.runtime))
    elif ref.phase != FRESH and ref.phase != RESTARTING and not ref.starting:
        future.complete(ref, None)
    else:
        watches = ref.extras().watches_now()
        if watches.starts is None:
            watches.starts = []
        watches.starts.append(future)
