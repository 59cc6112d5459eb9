"""Spawning: creates an actor from a class and options, and makes it ready for the first time."""

import inspect
import types

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint32_t

from callboard._inside.life.ending cimport OwnedResource, leave_parent
from callboard._inside.life.unfinished cimport StepLock
from callboard._inside.receiving.dispatch cimport run_native, run_python, run_shared
from callboard._inside.sending.actor_cell cimport (
    ActorCell, adopting_cell, carrying_cell, cell_of, counted_cell, limited, native_cell, task_cell,
)
from callboard._inside.sending.native_ref cimport NativeRef
from callboard._inside.sending.overflow cimport Overflow, overflow_named
from callboard._inside.sending.ref cimport FRESH, RESTARTING, ActorRef, Recipe
from callboard._inside.sending.runtime cimport Runtime
from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport relaxed
from callboard.mailbox.limits cimport Limits
from callboard.native cimport NativeActor
from callboard.scheduling.cell cimport Run, dedicated_cell, python_cell, recorded_cell, unpinned_cell, wants_token
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.dispatching cimport make_ready
from callboard.scheduling.team cimport Team
from callboard.scheduling.worker cimport WorkerThread, worker_here
from callboard.scheduling.worker_core cimport Worker

from callboard._inside import arguments
from callboard.core import checks
from callboard.core.errors import PolicyError, SpawnError, SystemClosed
from callboard.core.threads.constants import make_constants_immortal
from callboard.core.text import safe_repr
from callboard.actor import Actor
from callboard.mailboxes import Mailbox
from callboard.scheduling import config
from callboard.supervision import Supervision

cdef dict recipes = {}  # class -> its Recipe, of classes that take no attribute: those live for ever
cdef object STOP = Supervision()
cdef frozenset OPTIONS = arguments.OF_SPAWN
cdef tuple OF_CLASSES = ("mailbox", "supervision", "dedicated", "event_loop", "concurrency")  # which may be attributes

cdef Py_ssize_t MOST_SHAPES = 64
cdef uint32_t MOST_AT_ONCE = 2**31 - 1


def spawn(Runtime runtime, ActorRef parent or None, cls, tuple args, dict kwargs):
    """Make an actor of class `cls`, a child of `parent` or, without one, a top-level actor.

    `cls` may be a `partial` of a class, or one with parameters, `Box[int]`. `kwargs` holds the
    options of `ActorSystem.spawn` and the keyword arguments of the class. Raises SpawnError (an ArgumentsError if the
    class does not take the arguments), PolicyError, SystemClosed or ForkedSystem.
    """
    cdef dict fixed = {}
    cdef dict options = {}
    if not isinstance(cls, type):
        cls, args, fixed = arguments.taken_apart(cls, args)
    cdef Recipe plain = recipe_of(cls)
    check_arguments(cls, args, fixed, kwargs)
    if kwargs and not OPTIONS.isdisjoint(kwargs):
        options = {option: value for option, value in kwargs.items() if option in OPTIONS}
        kwargs = {argument: value for argument, value in kwargs.items() if argument not in OPTIONS}
    if fixed:
        kwargs = {**fixed, **kwargs}
    return spawn_by(runtime, parent, plain, args, kwargs, options)


@cython.binding(True)  # a method of whatever class has it
def spawn_in_system(self, cls, /, *args, **kwargs):
    """Spawn a top-level actor: `ActorSystem.spawn`, which describes it."""
    return spawn(self._runtime, None, cls, args, kwargs)


def spawn_divided(Runtime runtime, ActorRef parent or None, cls, tuple args, dict kwargs, dict options):
    """Make an actor as spawn() does, of arguments and options that were divided and checked before."""
    return spawn_by(runtime, parent, recipe_of(cls), args, kwargs, options)


def check_options(Runtime runtime, cls, dict options):
    """Raise what spawn_divided() would raise because of these options, and make no actor."""
    cdef Recipe plain = recipe_of(cls)
    prepare(runtime, None, plain, (), {}, {**plain.defaults, **options})
    if options.get("placement") is not None:
        runtime.config.placement_policy(options["placement"])


cdef ActorRef spawn_by(
        Runtime runtime, ActorRef parent, Recipe plain, tuple args, dict kwargs, dict options):
    name = placement = None
    if plain.defaults:
        options = {**plain.defaults, **options}
    if runtime.tuned:
        # The operator's options win over the code's.
        options = {**options, **runtime.config.spawn_options(plain.cls, options.get("name"))}
    if options:
        name = options.get("name")
        placement = options.get("placement")
    if runtime.closing or runtime.forked:
        refuse(runtime)
    cdef ActorRef ref = prepare(runtime, parent, plain, args, kwargs, options)
    if name is not None:
        take_name(ref, name)
    if runtime.records is not None:
        note_spawn(ref)
    try:
        join_family(ref)
        if runtime.sampled_every != 0:  # after that: what begins a trace sees this actor, or is seen here
            ref._be_sampled(True)
            if runtime.sampled_every == 0:  # the trace has just ended
                ref._be_sampled(False)
        if runtime.closing and parent is None:
            refuse(runtime)  # the stop may not have seen this actor among the others
        ref.cell.set_affinity(affinity_of(ref, placement, ref.cell.has(dedicated_cell)).core, relaxed)
        if args or kwargs:
            take_resources(ref, args, kwargs)
    except BaseException:
        release_resources(ref)
        leave_parent(ref)
        close_failed(ref)
        raise
    assert holds(ref.phase == FRESH and ref.cell.get_affinity(relaxed) != NULL and ref.cell.owner == <void*>ref)
    make_ready(ref.cell, current_context())
    if runtime.on_spawn is not None:
        runtime.on_spawn()
    return ref


cdef ActorRef prepare(
        Runtime runtime, ActorRef parent, Recipe plain, tuple args, dict kwargs, dict options):
    """Make the ref of an actor that no other code knows yet. Raises SpawnError and others for wrong options."""
    mailbox = supervision = context = None
    cdef uint32_t weight = 0
    cdef bint dedicated = False
    cdef bint event_loop = False
    cdef uint32_t concurrency = 1
    if options:
        mailbox = options.get("mailbox")
        priority = options.get("priority")
        if priority is not None:
            weight = checks.whole("an actor's priority", priority, 0, 2**32 - 1, error=SpawnError)
        supervision = options.get("supervision")
        dedicated = checks.flag("dedicated", options.get("dedicated", False), error=SpawnError)
        event_loop = checks.flag("event_loop", options.get("event_loop", False), error=SpawnError)
        concurrency = checks.whole("concurrency", options.get("concurrency", 1), 1, MOST_AT_ONCE, error=SpawnError)
        context = options.get("context")
    cdef Recipe recipe = plain
    if args or kwargs or supervision is not None or event_loop or concurrency != 1:
        recipe = recipe_with(plain, args, kwargs, supervision)
        if event_loop:
            check_event_loop(recipe, dedicated)
        if concurrency > 1:
            check_concurrency(recipe, concurrency)
        recipe.has_async_options = event_loop or concurrency > 1
    cdef ActorRef ref = make_ref(runtime, recipe, dedicated)
    ref.cell.number = runtime.next_number()
    ref.cell.weight = weight
    ref.recipe = recipe
    ref.parent = parent
    ref.runtime = runtime
    if mailbox is not None or runtime.counted:
        limit(ref, mailbox)
    if context is not None or runtime.carrying:
        carry(ref, context)
    if runtime.spans is not None and not (recipe.native or recipe.many or recipe.runs):
        ref.cell.set(carrying_cell)
    return ref


cdef int note_spawn(ActorRef ref) except -1:
    """Tell monitoring of a new actor."""
    ref.cell.created = monotonic_ns()
    ref.cell.set_times(ref.runtime.times_of(ref.recipe.cls.__qualname__).times, relaxed)
    if ref.runtime.config.is_monitored(ref.recipe.cls):
        ref.cell.set(recorded_cell)
        ref.runtime.records.note(ref)
    return 0


cdef int take_resources(ActorRef ref, tuple args, dict kwargs) except -1:
    """Have the ends of channels among the arguments belong to the actor from now on."""
    for value in args:
        if isinstance(value, OwnedResource):
            (<OwnedResource>value).belong_to(ref)
    for value in kwargs.values():
        if isinstance(value, OwnedResource):
            (<OwnedResource>value).belong_to(ref)
    return 0


cdef void release_resources(ActorRef ref) noexcept:
    cdef OwnedResource resource
    if ref.extra is not None and ref.extra.resources is not None:
        for resource in ref.extra.resources:
            resource.part()
        ref.extra.resources = None


cdef int close_failed(ActorRef ref) except -1:
    """Have a worker make dead letters of messages to an actor whose spawn fails: others may have found it."""
    cdef Team team = ref.runtime.team
    assert holds(ref.phase == FRESH and ref.instance is None)
    ref.cell.set_affinity((<WorkerThread>(<list>team.workers)[0]).core, relaxed)
    ref.mark_closed()
    ref.kept = True  # by the reference that wake_closed() makes
    ref.wake_closed(current_context())
    return 0


cdef ActorRef make_ref(Runtime runtime, Recipe recipe, bint dedicated):
    cdef ActorRef ref
    cdef uint32_t flags = dedicated_cell if dedicated else 0
    cdef Context* context = current_context()
    context.makes_handle = True
    try:
        ref = NativeRef.__new__(NativeRef) if recipe.native else ActorRef.__new__(ActorRef)
    finally:
        context.makes_handle = False
    if recipe.native:
        ref.cell = new ActorCell(run_native, <void*>ref, flags | native_cell)
    else:
        flags |= python_cell
        if recipe.runs:
            flags |= task_cell
        if runtime.team.token and not dedicated:
            flags |= wants_token
        if recipe.event_loop and recipe.concurrency > 1:
            ref.cell = new ActorCell(<Run>run_shared, <void*>ref, flags)
            ref.extras().concurrency_now().step_lock = StepLock()
        else:
            ref.cell = new ActorCell(<Run>run_python, <void*>ref, flags)
    return ref


cdef int refuse(Runtime runtime) except -1:
    runtime.refuse_fork()
    raise SystemClosed(f"the actor system {runtime.name!r} was stopped")


cdef int check_arguments(cls, tuple args, dict fixed, dict kwargs) except -1:
    """Refuse arguments that the class does not take, and options that may be some. Which it takes depends on their
    number and their names: those that were found right once are known from then on."""
    cdef tuple shape = (len(args), *kwargs)
    if fixed:
        shape += (None, *fixed)
    known = cls.__dict__.get("_callboard_shapes")
    if known is not None and shape in known:
        return 0
    arguments.refuse_misfit(cls, args, fixed, kwargs)
    if known is None:
        known = set()
        try:
            type.__setattr__(cls, "_callboard_shapes", known)
        except TypeError:  # of a class that takes no attribute each spawn is looked at
            return 0
    if len(known) < MOST_SHAPES:
        known.add(shape)
    return 0


cdef Recipe recipe_of(cls):
    """Return the facts about a class, found once. They live as long as the class, in an attribute of it."""
    recipe = getattr(cls, "_callboard_recipe", None)
    if isinstance(recipe, Recipe) and (<Recipe>recipe).cls is cls:  # and not of a base
        return <Recipe>recipe
    if not isinstance(cls, type):
        raise SpawnError(f"spawn() expects a subclass of Actor, got {safe_repr(cls)}")
    recipe = recipes.get(cls)
    if recipe is None:
        recipe = inspect_class(cls)
        try:
            type.__setattr__(cls, "_callboard_recipe", recipe)
        except TypeError:
            recipes[cls] = recipe
    return <Recipe>recipe


cdef Recipe inspect_class(cls):
    cdef Recipe recipe = Recipe.__new__(Recipe)
    recipe.native = issubclass(cls, NativeActor)
    if not recipe.native and not issubclass(cls, Actor):
        raise SpawnError(f"spawn() expects a subclass of Actor, got {cls.__qualname__}")
    receive = inspect.getattr_static(cls, "receive", None)
    if receive is None and not recipe.native:
        raise SpawnError(f"{cls.__qualname__} has no method `receive(self, message)`")
    if not recipe.native and not callable(getattr(cls, "receive")):
        raise SpawnError(f"{cls.__qualname__}.receive is {safe_repr(receive)}, which cannot be called")
    if inspect.isgeneratorfunction(receive) or inspect.isasyncgenfunction(receive):
        raise SpawnError(f"{cls.__qualname__}.receive has a `yield`, so it is a generator: handlers return answers")
    may_start = not recipe.native and not getattr(cls, "_callboard_runs", False)
    for hook in ("on_start", "on_stop", "on_failure", "receive_many"):
        is_own = hook in ("on_start", "on_stop") and may_start
        if inspect.iscoroutinefunction(getattr(cls, hook, None)) and not is_own:
            which = "only `receive`, `on_start` and `on_stop`" if may_start else "no hook of a task or native actor"
            raise SpawnError(f"{cls.__qualname__}.{hook} is `async`, but {which} may be")
    recipe.cls = cls
    recipe.args = ()
    recipe.kwargs = {}
    recipe.supervision = STOP
    recipe.receive = receive if isinstance(receive, types.FunctionType) else None
    recipe.many = hasattr(cls, "receive_many")
    recipe.runs = getattr(cls, "_callboard_runs", False)
    if recipe.runs and not inspect.iscoroutinefunction(cls.run):
        raise SpawnError(f"{cls.__qualname__} is a task: its run() must be `async def run(self)`")
    recipe.defaults = defaults_of(cls)
    base = NativeActor if recipe.native else Actor
    recipe.starts = cls.on_start is not base.on_start
    recipe.stops = cls.on_stop is not base.on_stop
    recipe.fails = cls.on_failure is not base.on_failure
    make_constants_immortal(cls)  # its actors run the same methods
    return recipe


cdef dict defaults_of(cls):
    """Return the options that a class has as attributes, which are not its methods or properties."""
    found = {}
    for option in OF_CLASSES:
        value = inspect.getattr_static(cls, option, None)
        if value is not None and not hasattr(type(value), "__get__"):
            found[option] = value
    return found


cdef Recipe recipe_with(Recipe plain, tuple args, dict kwargs, supervision):
    cdef Recipe recipe = Recipe.__new__(Recipe)
    recipe.cls = plain.cls
    recipe.args = args
    recipe.kwargs = kwargs
    recipe.receive = plain.receive
    recipe.many = plain.many
    recipe.runs = plain.runs
    recipe.starts = plain.starts
    recipe.stops = plain.stops
    recipe.fails = plain.fails
    recipe.native = plain.native
    recipe.supervision = plain.supervision
    if supervision is not None:
        recipe.supervision = Supervision._of(supervision)
    return recipe


cdef int check_event_loop(Recipe recipe, bint dedicated) except -1:
    cls = recipe.cls.__qualname__
    if recipe.native:
        raise SpawnError(f"{cls} is native, and has no coroutines for an event loop")
    if dedicated:
        raise SpawnError(
            f"{cls} cannot be dedicated and have event_loop=True: a coroutine runs on the event loop's "
            "thread; a dedicated actor may call asyncio.run() in its thread")
    recipe.event_loop = True
    return 0


cdef int check_concurrency(Recipe recipe, uint32_t concurrency) except -1:
    cls = recipe.cls.__qualname__
    what = f"concurrency={concurrency}"
    if recipe.native or recipe.runs:
        raise SpawnError(f"{cls} is {'native' if recipe.native else 'a task'}, and cannot have {what}")
    if recipe.many:
        raise SpawnError(f"{cls} has `receive_many`, which takes messages together: it cannot have {what}")
    if not inspect.iscoroutinefunction(recipe.cls.receive):
        raise SpawnError(
            f"{cls}.receive is not `async def`, so the actor handles one message after the other: "
            f"it cannot have {what}")
    recipe.concurrency = concurrency
    return 0


cdef int limit(ActorRef ref, mailbox) except -1:
    """Give the cell what its mailbox's kind needs."""
    cdef int64_t capacity = INT64_MAX
    cdef int64_t timeout_ns = 0
    cdef bint senders_pop = False
    cdef Overflow overflow
    if mailbox is not None:
        if not isinstance(mailbox, Mailbox):
            raise SpawnError(
                f"spawn() expects a BoundedMailbox or a PriorityMailbox as mailbox, got {safe_repr(mailbox)}")
        ref.intake = mailbox._make_intake()
        if ref.recipe.native and ref.intake is not None:
            raise SpawnError(
                f"{ref.recipe.cls.__qualname__} is native, and cannot have a {type(mailbox).__name__}")
        if mailbox.capacity is not None:
            capacity = mailbox.capacity
            timeout_ns = <int64_t>(min(mailbox.timeout, 1e9) * 1e9)
            overflow = overflow_named(mailbox.overflow)
            cell_of(ref).overflow = <void*>overflow
            senders_pop = overflow.senders_pop
            if ref.recipe.native and senders_pop:
                raise SpawnError(
                    f"{ref.recipe.cls.__qualname__} is native, and reads its messages in place: "
                    f"its mailbox cannot {mailbox.overflow}")
    assert holds(ref.cell.limits == NULL)
    ref.cell.limits = new Limits(capacity, timeout_ns, senders_pop)
    ref.cell.set(counted_cell if ref.cell.limits.only_counts() else limited)
    ref.detour = ref.intake is not None or senders_pop
    return 0


cdef int carry(ActorRef ref, context) except -1:
    """Have messages bring their senders' context variables, where that is asked for and possible."""
    cdef str obstacle = None
    if context is not None and checks.one_of("context", context, config.CONTEXTS, error=SpawnError) == "own":
        return 0
    if ref.recipe.native:
        obstacle = "is native, and has no place for context variables in its messages"
    elif ref.recipe.many:
        obstacle = "has receive_many(), whose messages have many senders"
    if obstacle is None:
        ref.cell.set(carrying_cell | adopting_cell)
        ref.detour = True
    elif context is not None:
        raise SpawnError(f"{ref.recipe.cls.__qualname__} {obstacle}: its context is its own")
    return 0


cdef int take_name(ActorRef ref, name) except -1:
    cdef Runtime runtime = ref.runtime
    if not isinstance(name, str) or not name or "/" in name:
        raise SpawnError(f"an actor's name must be a non-empty string without '/', got {safe_repr(name)}")
    if runtime.names.setdefault((ref.parent, name), ref) is not ref:
        where = "the system" if ref.parent is None else ref.parent._short_path
        raise SpawnError(f"{where} already has an actor named {name!r}")
    ref.own_name = name
    return 0


cdef WorkerThread affinity_of(ActorRef ref, placement, bint dedicated):
    """Find a worker for the actor, and see to it that it has a thread."""
    cdef Team team = ref.runtime.team
    cdef WorkerThread worker = place(ref, placement, dedicated)
    if team.awaits_need and (worker.core.index != 0 or not ref.cell.has(wants_token)):
        team.need_all()
    return worker


cdef WorkerThread place(ActorRef ref, placement, bint dedicated):
    cdef Team team = ref.runtime.team
    if dedicated:
        ref.own_worker = team.start_dedicated(ref.runtime.name, ref.name)
        return ref.own_worker
    if placement is None:
        if team.steals and not ref.cell.has(wants_token):
            ref.cell.set(unpinned_cell)
            if is_worker_of(team):
                return worker_here()
        if team.steals or len(team.workers) == 1:
            # Idle workers take what is too much for the first. Python actors come to the worker with the
            # token: so that may as well always be the same one.
            return <WorkerThread>(<list>team.workers)[0]
        placement = ref.runtime.placement
    else:
        placement = ref.runtime.config.placement_policy(placement)
    try:
        worker = placement.place(ref, team.workers)
    except PolicyError as error:
        raise PolicyError(f"{ref._short_path} cannot be placed: {error}") from error
    except Exception as error:
        raise PolicyError(
            f"{safe_repr(placement)} failed to place {ref._short_path}: {safe_repr(error)}") from error
    if not isinstance(worker, WorkerThread) or worker not in team.workers:
        raise PolicyError(
            f"{safe_repr(placement)} placed {ref._short_path} on {safe_repr(worker)}, "
            "expected one of the system's workers")
    return <WorkerThread>worker


cdef bint is_worker_of(Team team) noexcept:
    """Tell whether the calling thread is one of the team's workers, and not a dedicated one."""
    cdef Worker* here = current_context().worker
    return here != NULL and here.team == team.state and here.steals


cdef int join_family(ActorRef ref) except -1:
    cdef ActorRef parent = <ActorRef>ref.parent
    if parent is None:
        ref.runtime.children[ref] = None
        return 0
    with cython.critical_section(parent):
        if parent.phase >= RESTARTING:
            what = "restarting" if parent.phase == RESTARTING else "stopping"
            raise SpawnError(f"{parent._short_path} is {what}, and cannot spawn {ref.name}")
        if parent.children_of is None:
            parent.children_of = {}
        parent.children_of[ref] = None
    return 0
