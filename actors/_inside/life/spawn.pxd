from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.runtime cimport Runtime
