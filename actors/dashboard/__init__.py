"""A running system in the browser: `serve_dashboard(system)`, and `callboard dashboard`.

Requires Starlette and uvicorn: the extra `dashboard`.
"""

from callboard.dashboard.serving import Dashboard, serve_dashboard

__all__ = ["Dashboard", "serve_dashboard"]
