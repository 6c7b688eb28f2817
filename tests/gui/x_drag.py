"""Drags files from another program onto a window, by the protocol XDND, with Xlib alone."""

import ctypes
import ctypes.util
import time
import urllib.parse

Long, ULong, Int, Pointer = ctypes.c_long, ctypes.c_ulong, ctypes.c_int, ctypes.c_void_p
CLIENT_MESSAGE, SELECTION_REQUEST, SELECTION_NOTIFY = 33, 30, 31
XA_ATOM, PROPERTY_REPLACE, VERSION = 4, 0, 5


def event(*fields):
    names = [("type", Int), ("serial", ULong), ("send_event", Int), ("display", Pointer)]
    return type("Event", (ctypes.Structure,), {"_fields_": names + list(fields)})


ClientMessage = event(("window", ULong), ("message_type", ULong), ("format", Int), ("data", Long * 5))
SelectionRequest = event(*((name, ULong) for name in ("owner", "requestor", "selection", "target", "property", "time")))
Selection = event(*((name, ULong) for name in ("requestor", "selection", "target", "property", "time")))


class Event(ctypes.Union):
    _fields_ = [("type", Int), ("client", ClientMessage), ("request", SelectionRequest), ("selection", Selection),
                ("pad", Long * 24)]


def load():
    """Xlib, with the types of what is called here; None where it is not installed."""
    name = ctypes.util.find_library("X11")
    if name is None:
        return None
    x = ctypes.CDLL(name)
    for function, result, arguments in [
        ("XOpenDisplay", Pointer, [ctypes.c_char_p]),
        ("XDefaultRootWindow", ULong, [Pointer]),
        ("XCreateSimpleWindow", ULong, [Pointer, ULong, Int, Int, Int, Int, Int, ULong, ULong]),
        ("XInternAtom", ULong, [Pointer, ctypes.c_char_p, Int]),
        ("XSetSelectionOwner", Int, [Pointer, ULong, ULong, ULong]),
        ("XQueryTree", Int, [Pointer, ULong] + [Pointer] * 4),
        ("XListProperties", Pointer, [Pointer, ULong, Pointer]),
        ("XSendEvent", Int, [Pointer, ULong, Int, Long, Pointer]),
        ("XChangeProperty", Int, [Pointer, ULong, ULong, ULong, Int, Int, ctypes.c_char_p, Int]),
        ("XPending", Int, [Pointer]),
        ("XNextEvent", Int, [Pointer, Pointer]),
        ("XFlush", Int, [Pointer]),
        ("XCloseDisplay", Int, [Pointer])]:
        getattr(x, function).restype, getattr(x, function).argtypes = result, arguments
    return x


class Drag:

    def __init__(self, display):
        self.x = load()
        self.display = self.x.XOpenDisplay(display.encode())
        self.root = self.x.XDefaultRootWindow(self.display)
        self.source = self.x.XCreateSimpleWindow(self.display, self.root, 0, 0, 1, 1, 0, 0, 0)
        self.x.XSetSelectionOwner(self.display, self.atom("XdndSelection"), self.source, 0)

    def atom(self, name):
        return self.x.XInternAtom(self.display, name.encode(), 0)

    def target(self, seconds=30):
        """The window that takes drops."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            root, parent, children, count = ULong(), ULong(), ctypes.POINTER(ULong)(), ctypes.c_uint()
            self.x.XQueryTree(self.display, self.root, ctypes.byref(root), ctypes.byref(parent), ctypes.byref(children),
                              ctypes.byref(count))
            for window in children[:count.value]:
                number = Int()
                listed = self.x.XListProperties(self.display, window, ctypes.byref(number))
                if not listed:
                    continue
                atoms = ctypes.cast(listed, ctypes.POINTER(ULong))[:number.value]
                if self.atom("XdndAware") in atoms:
                    return window
            time.sleep(0.1)
        raise TimeoutError("no window takes drops")

    def send(self, window, name, *data):
        message = Event()
        message.client.type, message.client.window, message.client.format = CLIENT_MESSAGE, window, 32
        message.client.message_type = self.atom(name)
        message.client.data[:] = list(data) + [0] * (5 - len(data))
        self.x.XSendEvent(self.display, window, 0, 0, ctypes.byref(message))
        self.x.XFlush(self.display)

    def wait(self, name, text=b"", seconds=30):
        """Answers requests for the files until a message of that name comes."""
        end, received = time.monotonic() + seconds, Event()
        while time.monotonic() < end:
            if not self.x.XPending(self.display):
                time.sleep(0.01)
                continue
            self.x.XNextEvent(self.display, ctypes.byref(received))
            if received.type == CLIENT_MESSAGE and received.client.message_type == self.atom(name):
                return list(received.client.data)
            if received.type == SELECTION_REQUEST:
                self.answer(received.request, text)
        raise TimeoutError(f"no {name}")

    def answer(self, request, text):
        self.x.XChangeProperty(self.display, request.requestor, request.property, request.target, 8, PROPERTY_REPLACE,
                               text, len(text))
        answer = Event()
        answer.selection.type = SELECTION_NOTIFY
        for field in ("requestor", "selection", "target", "property", "time"):
            setattr(answer.selection, field, getattr(request, field))
        self.x.XSendEvent(self.display, request.requestor, 0, 0, ctypes.byref(answer))
        self.x.XFlush(self.display)

    def drop(self, files):
        """Drops files onto the window; returns when it has taken them."""
        text = "".join(f"file://{urllib.parse.quote(file)}\r\n" for file in files).encode()
        window = self.target()
        self.send(window, "XdndEnter", self.source, VERSION << 24, self.atom("text/uri-list"))
        self.send(window, "XdndPosition", self.source, 0, 200 << 16 | 200, 0, self.atom("XdndActionCopy"))
        accepted = self.wait("XdndStatus")[1] & 1
        if not accepted:
            raise ValueError("the window refuses the files")
        self.send(window, "XdndDrop", self.source, 0, 0)
        self.wait("XdndFinished", text)

    def close(self):
        self.x.XCloseDisplay(self.display)
