"""An actor's start: its object is made, and its hook runs."""

from cpython.object cimport PyObject_GenericSetAttr

from callboard._inside.life.failure cimport fail
from callboard._inside.sending.ref cimport FRESH, LIVE, ActorRef, Recipe, cell_of
from callboard.scheduling.cell cimport Context


cdef int make(ActorRef ref, Recipe recipe, Context* context) except -1:
    """Make the object so that it knows its ref when its `__init__` begins."""
    if recipe.native:
        context.constructing = <void*>ref
        try:
            ref.instance = recipe.cls(*recipe.args, **recipe.kwargs)
        finally:
            context.constructing = NULL
    else:
        instance = recipe.cls.__new__(recipe.cls, *recipe.args, **recipe.kwargs)
        # Generic: a class with a __setattr__ of its own, such as a frozen dataclass, has no say in it.
        PyObject_GenericSetAttr(instance, "_callboard_ref", ref)
        instance.__init__(*recipe.args, **recipe.kwargs)
        ref.instance = instance
    return 0


cdef void construct(ActorRef ref, Context* context) noexcept:
    """Make the user's object. A failure is the actor's, and goes to its supervisor."""
    cdef Recipe recipe = ref.recipe
    try:
        make(ref, recipe, context)
        cell_of(ref).object = <void*>ref.instance
        if recipe.native:
            ref.bound = True
        elif recipe.receive is not None:
            ref.handler = recipe.receive
            ref.bound = False
        else:
            ref.handler = ref.instance.receive
            ref.bound = True
        ref.phase = LIVE
        if recipe.starts:
            ref.instance.on_start()
    except BaseException as error:
        ref.phase = FRESH
        fail(ref, error, None)
