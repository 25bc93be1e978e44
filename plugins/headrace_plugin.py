"""What Airflow loads of Headrace by itself: the page of all pipelines, in the menu as Headrace, and the maker of pools.

Every Airflow process loads its plugins, each task's too, but only the API server shows pages: the page's
imports (seconds) wait for its first request.
"""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from headrace.pools import Pools


class Page:
    """The ASGI application of headrace.views.app, imported when it is first asked for."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            from headrace.views.app import app

            self._app = app
        await self._app(scope, receive, send)


class HeadracePlugin(AirflowPlugin):
    name = "headrace"
    listeners: ClassVar[list[Any]] = [Pools()]
    fastapi_apps: ClassVar[list[Any]] = [{"app": Page(), "url_prefix": "/headrace", "name": "Headrace"}]
    external_views: ClassVar[list[Any]] = [
        {
            "name": "Headrace",
            "href": "/headrace/",
            "destination": "nav",
            "url_route": "headrace",
            "nav_top_level": True,
            "icon": "/headrace/icon.svg",
            "icon_dark_mode": "/headrace/icon-dark.svg",
        }
    ]
