"""A running system in the browser: `system.serve_dashboard()`, `callboard dashboard`.

It needs Starlette and uvicorn, the extra `dashboard`.
"""
