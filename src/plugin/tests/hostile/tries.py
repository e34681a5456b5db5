import ctypes, errno, mmap, platform, resource, socket, struct
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    arguments = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

# Numbers that are the same on all processors of today, and those that are not.
X86 = platform.machine() == "x86_64"
NUMBERS = {"io_uring_setup": 425, "clone3": 435, "pidfd_getfd": 438,
           "process_vm_readv": 310 if X86 else 270, "ptrace": 101 if X86 else 117, "unshare": 272 if X86 else 97,
           "bpf": 321 if X86 else 280, "keyctl": 250 if X86 else 219, "mount": 165 if X86 else 40,
           "setns": 308 if X86 else 268, "shmget": 29 if X86 else 194, "shmctl": 31 if X86 else 195, "getpid": 39, "clone": 56 if X86 else 220}

def connect(kind, family, address, talk=None):
    with socket.socket(family, kind) as s:
        s.settimeout(5); s.connect(address)
        if talk: s.sendall(talk); assert s.recv(64).startswith(b"OK")

def make(family, kind): socket.socket(family, kind).close()
def read(path):
    with open(path, "rb") as f: f.read(16)
def write(path):
    with open(path, "ab") as f: f.write(b"x")
def rename(path): os.rename(path, path + ".moved"); os.rename(path + ".moved", path)
def stat(path): os.stat(path)
def same_mode(path): os.chmod(path, os.stat(path).st_mode & 0o7777)
def same_times(path):
    facts = os.stat(path); os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

def fill(path, size):
    try:
        with open(path, "wb") as f:
            for _ in range(size >> 20): f.write(bytes(1 << 20))
    finally:
        try: os.unlink(path)
        except OSError: pass

def long_file(path, size):
    try:
        with open(path, "wb") as f: f.truncate(size)
    finally: os.unlink(path)

def memory(size):
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS): pass

def descriptors(count):
    held = []
    try:
        for _ in range(count): held.append(os.open("/dev/null", os.O_RDONLY))
    finally:
        for fd in held: os.close(fd)

def processes(count):
    held = []
    try:
        for _ in range(count):
            pid = os.fork()
            if pid == 0: signal.pause()
            held.append(pid)
    finally:
        for pid in held: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)

def vm_read(pid):
    ours = ctypes.create_string_buffer(16)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(ours), 16)
    call(NUMBERS["process_vm_readv"], pid, ctypes.byref(local), 1, ctypes.byref(local), 1, 0)

def io_uring(): os.close(call(NUMBERS["io_uring_setup"], 1, ctypes.create_string_buffer(256)))

def realtime(): in_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))

CLONE_NEWUSER = 0x10000000
def begin(number, *arguments):
    pid = call(number, *arguments)
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)

def in_child(attempt):
    pid = os.fork()
    if pid == 0:
        try: attempt(); os._exit(0)
        except OSError as error: os._exit(error.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status: raise OSError(status, os.strerror(status))

def pair():
    for family in (socket.AF_UNIX,):
        a, b = socket.socketpair(family); a.send(b"x"); b.recv(1); a.close(); b.close()

def attempts(c):
    pid, keeper = c["daemon"], os.getppid()
    inet, unix = socket.AF_INET, socket.AF_UNIX
    stream, dgram, raw = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
    own = os.path.abspath(sys.argv[0])
    tmp, data = os.environ["TMPDIR"], INIT["dirs"]["data"]
    yield "an internet connection", lambda: connect(stream, inet, ("127.0.0.1", c["port"]))
    yield "an internet datagram", lambda: connect(dgram, inet, ("127.0.0.1", c["port"]))
    yield "an IPv6 socket", lambda: make(socket.AF_INET6, stream)
    yield "a raw internet socket", lambda: make(inet, raw)
    yield "a UNIX socket by path", lambda: connect(stream, unix, c["socket"])
    yield "a UNIX socket by name", lambda: connect(stream, unix, "\0" + c["abstract"])
    yield "the bus", lambda: connect(stream, unix, c["bus"], b"\0AUTH EXTERNAL %s\r\n" % str(os.getuid()).encode().hex().encode())
    yield "any UNIX socket", lambda: make(unix, stream)
    yield "a netlink socket", lambda: make(socket.AF_NETLINK, raw)
    yield "a packet socket", lambda: make(socket.AF_PACKET, dgram)
    yield "a vsock socket", lambda: make(socket.AF_VSOCK, stream)
    yield "io_uring", io_uring
    yield "a pair of sockets", pair
    yield "reading /etc/passwd", lambda: read("/etc/passwd")
    yield "listing /", lambda: os.listdir("/")
    yield "listing /etc", lambda: os.listdir("/etc")
    yield "listing the home folder", lambda: os.listdir(c["home"])
    yield "the daemon's memory by its file", lambda: read("/proc/%d/mem" % pid)
    yield "the daemon's memory by a call", lambda: vm_read(pid)
    yield "the keeper's memory by a call", lambda: vm_read(keeper)
    yield "attaching to the daemon", lambda: in_child(lambda: call(NUMBERS["ptrace"], 16, pid, 0, 0))
    yield "the daemon's descriptors", lambda: os.listdir("/proc/%d/fd" % pid)
    yield "the daemon's environment", lambda: read("/proc/%d/environ" % pid)
    yield "reading the trust file", lambda: read(c["trust"])
    yield "writing the trust file", lambda: write(c["trust"])
    yield "replacing the trust file", lambda: rename(c["trust"])
    yield "seeing the trust file", lambda: stat(c["trust"])
    yield "changing the trust file's mode", lambda: same_mode(c["trust"])
    yield "changing the trust file's times", lambda: same_times(c["trust"])
    yield "listing the state", lambda: os.listdir(os.path.dirname(c["trust"]))
    yield "reading the configuration", lambda: read(c["config"])
    yield "writing the configuration", lambda: write(c["config"])
    yield "writing its own copy", lambda: write(own)
    yield "replacing its own copy", lambda: rename(own)
    yield "a new file beside its own copy", lambda: write(os.path.dirname(own) + "/new")
    yield "changing its own copy's mode", lambda: same_mode(own)
    yield "reading another plugin's data", lambda: read(c["other"])
    yield "writing another plugin's data", lambda: write(c["other"])
    yield "reading another plugin's copy", lambda: read(c["other_copy"])
    yield "reading a granted file", lambda: read(c["granted"])
    yield "writing a granted file", lambda: write(c["granted"])
    yield "writing its own data", lambda: write(data + "/own")
    yield "a new file in /", lambda: write("/new")
    yield "a new file in /dev", lambda: write("/dev/new")
    yield "a new file in /usr", lambda: write("/usr/new")
    yield "the terminal", lambda: read("/dev/tty")
    yield "taking back its place before the memory killer", lambda: write("/proc/self/oom_score_adj")
    yield "64 MiB in /dev/shm", lambda: fill("/dev/shm/fill", 64 << 20)
    yield "a file of 300 MiB", lambda: long_file(tmp + "/long", 300 << 20)
    yield "1 GiB of memory", lambda: memory(1 << 30)
    yield "a higher limit", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
    yield "300 descriptors", lambda: descriptors(300)
    yield "200 processes", lambda: processes(200)
    yield "a core file's limit", lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    yield "real-time priority", realtime
    yield "the daemon's limits", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE)
    yield "the daemon's priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 0)
    yield "the daemon's processors", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0))
    yield "a signal to the daemon", lambda: os.kill(pid, 0)
    yield "a signal to the keeper", lambda: os.kill(keeper, 0)
    yield "a user namespace", lambda: in_child(lambda: call(NUMBERS["unshare"], CLONE_NEWUSER))
    yield "a user namespace by clone", lambda: begin(NUMBERS["clone"], CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    yield "a namespace by clone3", lambda: begin(NUMBERS["clone3"], struct.pack("11Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0), 88)
    yield "mounting", lambda: call(NUMBERS["mount"], b"none", b"/tmp", b"tmpfs", 0, 0)
    yield "loading a BPF program", lambda: call(NUMBERS["bpf"], 0, ctypes.create_string_buffer(128), 128)
    yield "a keyring", lambda: call(NUMBERS["keyctl"], 0, -3, 1)
    yield "memory that stays", lambda: call(NUMBERS["shmctl"], call(NUMBERS["shmget"], 0, 4096, 0o1600), 0, 0)
    if X86: yield "a call by its x32 number", lambda: call(0x40000000 + NUMBERS["getpid"])

def stream(id, p):
    found = {}
    for name, attempt in attempts(INIT["config"]):
        try: attempt(); found[name] = "done"
        except (OSError, MemoryError, AssertionError, ValueError) as error: found[name] = repr(error)
    with open(INIT["dirs"]["data"] + "/found.json", "w") as f: json.dump(found, f)
    answer(id, url("done"))
