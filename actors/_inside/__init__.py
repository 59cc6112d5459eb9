"""The inside of the actor layer, not for users.

Each folder imports only those before it: `answers`, `sending`, `life`, `receiving`.
"""
