-- luajit report.lua HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]   (on Linux)
local ffi = require "ffi"

ffi.cdef [[
  uint32_t zklock_abi(void); uint64_t zklock_hold_token(void *); int64_t zklock_hold_valid_for(void *);
  int32_t zklock_options_new(void **), zklock_options_set(void *, const char *option, const char *value),
    zklock_client_new_lazy(const char *hosts, void *options, void **), zklock_client_close(void *),
    zklock_mutex_new(void *client, const char *path, void *options, void **), zklock_release(void *),
    zklock_acquire_start(void *mutex, int64_t timeout, void **), zklock_call_hold(void *, void **),
    zklock_hold_wait_lost_start(void *hold, void **), zklock_call_fd(void *, int *descriptor);
  const char *zklock_last_error(void); void zklock_call_free(void *), zklock_hold_free(void *);
  struct pollfd { int fd; short events, revents; }; void *signal(int, void *); int fork(void), wait(int *),
    poll(void *, long, int), prctl(int, long), signalfd(int, void *, int), sigprocmask(int, void *, void *);]]

local C, library = ffi.C, ffi.load "libzklock.so.0.1"

local zk = setmetatable({}, { __index = function(_, name) return library["zklock_" .. name] end })

local out = ffi.new "void *[1]" -- A function writes the handle that it makes here.

local signals = ffi.new("long[16]", { 0x4002, 0 }) -- SIGINT and SIGTERM: they only end an await.
C.sigprocmask(0, signals, nil)
local polled = ffi.new("struct pollfd[2]", { { -1, 1 }, { C.signalfd(-1, signals, 0), 1 } })

local function check(status)
  if status ~= 0 then error { status = status, text = ffi.string(zk.last_error()) } end
end

local function take(status, free) -- takes the handle from `out`. Lua frees it, if that is how.
  check(status)
  return ffi.gc(out[0], free)
end

local function await(call, milliseconds) -- waits for its result, for so long at most (-1: for ever)
  check(zk.call_fd(call, ffi.cast("int *", polled)))
  C.poll(polled, 2, milliseconds)
  if polled[1].revents ~= 0 then error("interrupted by a signal", 0) end
end

local function with_lock(lock, timeout, body) -- runs the body while it holds the lock
  local call = take(zk.acquire_start(lock, timeout, out), zk.call_free)
  await(call, -1)
  local hold = take(zk.call_hold(call, out), zk.hold_free)
  local ok, problem = pcall(body, hold)
  check(zk.release(hold)) -- raises an error if the lock was lost
  if not ok then error(problem, 0) end
end

local function work(lock)
  with_lock(lock, 3000, function(hold)
    print(("acquired: token %d, valid for %d ms"):format(zk.hold_token(hold), zk.hold_valid_for(hold)))
    await(take(zk.hold_wait_lost_start(hold, out), zk.call_free), arg[3] * 1000) -- the work
  end)
  print "released"
end

io.stdout:setvbuf "line"

local client, status = nil, ffi.new "int[1]"
local ok, problem = pcall(function()
  assert(zk.abi() == 1, "libzklock is not of version 0.1")
  local options = take(zk.options_new(out)) -- Like the client and the lock, they live to the end.
  for n = 5, #arg do check(zk.options_set(options, arg[n]:match "([^=]*)=?(.*)")) end
  client = take(zk.client_new_lazy(arg[1], options, out)) -- It connects in each child by itself.
  local lock = take(zk.mutex_new(client, arg[2], nil, out))
  for _ = 1, arg[4] do if C.fork() == 0 then C.prctl(1, 2) return work(lock) end end -- SIGINT if orphaned
  C.signal(2, nil) C.sigprocmask(1, signals, nil) -- A signal kills the parent, and its workers then end.
end)
if not ok then print("failed: " .. tostring(problem.text or problem)) end
while C.wait(status) > 0 do ok = ok and status[0] == 0 end -- A worker has no children.
zk.client_close(client) -- frees the locks at once, even after an error
os.exit(ok)
