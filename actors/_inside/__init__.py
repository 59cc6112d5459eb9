"""The inside of the actor layer, not for users.

Of each other, the folders import only those before them: `answers`, `sending`, `life`,
`receiving`. On top of them `spawn` puts an actor together.
"""
