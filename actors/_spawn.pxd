from callboard._ref cimport ActorRef
from callboard._runtime cimport Runtime
