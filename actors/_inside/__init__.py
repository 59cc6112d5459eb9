"""The internals of the actor layer, not for users.

Each folder imports only those before it: `answers`, `sending`, `life`, `receiving`. On top of them
`spawn` puts an actor together.
"""
