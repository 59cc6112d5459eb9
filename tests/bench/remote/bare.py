"""The bare end of a socket: `discard` reads all and reports its size, `echo` sends it back."""

import socket
import sys


def discard(end: socket.socket) -> None:
    place, total = memoryview(bytearray(1 << 20)), 0
    while count := end.recv_into(place):
        total += count
    end.sendall(str(total).encode())


def echo(end: socket.socket) -> None:
    while data := end.recv(1 << 16):
        end.sendall(data)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[2])) as connected:
        connected.sendall(b"!")
        {"discard": discard, "echo": echo}[sys.argv[1]](connected)
