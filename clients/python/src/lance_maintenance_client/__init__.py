"""Client of lance-maintenance, the service that keeps Lance tables healthy.

| module | what it holds |
|---|---|
| `client` | `MaintenanceClient`: health, previews, jobs, tasks, the catalog |
| `errors` | `MaintenanceError`: what every failed call raises |
| `types` | what comes back, as typed dictionaries |
| `skill` | `Backend`: hands the jobs of the published maintenance skill to the service |
"""

from .client import MaintenanceClient
from .errors import MaintenanceError

__all__ = ["MaintenanceClient", "MaintenanceError"]
