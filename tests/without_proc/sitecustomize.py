"""On PYTHONPATH, it hides /proc and pidfds from tmuxorch: psutil stands in for that of macOS.

The shim runs without `site`, so the line that starts it does the same to the shim.
"""

import os

HIDDEN_FROM_SHIM = """
import os, shim
def without_proc(look):
    def hidden(path, *args, **kwargs):
        if str(path).startswith("/proc"):
            raise FileNotFoundError(2, "hidden", path)
        return look(path, *args, **kwargs)
    return hidden
os.open, os.stat = without_proc(os.open), without_proc(os.stat)
vars(os).pop("pidfd_open", None)
shim.become_subreaper = lambda: False
shim.main()
"""

try:
    from tmuxorch import shim
    from tmuxorch.adapters.system import procfs
except ImportError:
    pass  # another Python, that an agent runs
else:
    vars(os).pop("pidfd_open", None)
    procfs.LINUX = False
    shim.BOOT = shim.BOOT.replace("import shim; shim.main()", f"exec({HIDDEN_FROM_SHIM!r})")
