# Usage: ruby report.rb HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]
require "fiddle/import"

module ZKLock
  extend Fiddle::Importer # It calls C without Ruby's global lock, so other threads run. Handles are void*.
  dlload "libzklock.so.0.1"
  abort "libzklock does not have interface 1" unless extern("uint32_t zklock_abi()").call == 1
  %w[options_new(void*) options_set(void*,char*,char*) client_new_lazy(char*,void*,void*) client_close(void*)
     mutex_new(void*,char*,void*,void*) acquire_start(void*,int64_t,void*) call_hold(void*,void*)
     hold_wait_lost_start(void*,void*) call_fd(void*,void*) release(void*)].each { extern "int zklock_#{_1}" }
  ["void zklock_call_free(void*)", "void zklock_hold_free(void*)", "char *zklock_last_error()",
   "int64_t zklock_hold_valid_for(void*)", "uint64_t zklock_hold_token(void*)"].each { |line| extern line }
  Error = Class.new(StandardError) { attr_accessor :status }
  Hold = Struct.new(:handle, :token, :loss) do
    def valid_for = ZKLock.zklock_hold_valid_for(handle)
    def wait_lost(seconds = nil) = ZKLock.await(loss, seconds)
  end
  def self.out = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE) # NULL until C writes there
  def self.check(status) = status.zero? || # On the thread of the call: each thread has its own last error.
    raise(Error.new(zklock_last_error.to_s.force_encoding("UTF-8")).tap { |error| error.status = status })
  # Waits until a call ends, or for so many seconds. Ruby can interrupt this wait, but not one in C.
  def self.await(call, seconds = nil)
    check zklock_call_fd(call, descriptor = out)
    IO.select([IO.for_fd(descriptor[0, 4].unpack1("i"), autoclose: false)], nil, nil, seconds)
  end
  # Holds the lock during the block, which gets the hold. The timeout is in seconds.
  def self.synchronize(lock, timeout:)
    call, hold, loss = out, out, out # C fills them, so an interrupt right after a call cannot lose a handle.
    check zklock_acquire_start(lock, (timeout * 1000).round, call)
    await(call.ptr)
    check zklock_call_hold(call.ptr, hold)
    check zklock_hold_wait_lost_start(hold.ptr, loss)
    yield(Hold.new(hold.ptr, zklock_hold_token(hold.ptr), loss.ptr)).tap { check zklock_release(hold.ptr) }
  ensure # After an error, this cancels the wait or releases, in the background. To free NULL does nothing.
    [loss, call].each { |handle| zklock_call_free(handle&.ptr) }
    zklock_hold_free(hold&.ptr)
  end
end

hosts, path, seconds, workers, *options = ARGV
set, client, lock, threads = ZKLock.out, ZKLock.out, ZKLock.out, [] # They live to the end.
$stdout.sync = true
trap("INT") { exit 130 } # It raises SystemExit in the main thread.
at_exit { threads.each(&:kill) && ZKLock.zklock_client_close(client.ptr) } # The servers then free all locks.
at_exit { puts("failed: #{$!.message}") || exit(1) if $!.is_a?(ZKLock::Error) } # errors of the next lines
ZKLock.check ZKLock.zklock_options_new(set)
options.each { ZKLock.check ZKLock.zklock_options_set(set.ptr, *_1.partition("=").values_at(0, 2)) }
ZKLock.check ZKLock.zklock_client_new_lazy(hosts, set.ptr, client)
ZKLock.check ZKLock.zklock_mutex_new(client.ptr, path, nil, lock)
report = lambda do
  ZKLock.synchronize(lock.ptr, timeout: 3) do |hold|
    puts "acquired: token #{hold.token}, valid for #{hold.valid_for} ms"
    hold.wait_lost(seconds.to_f) # The work. A loss ends it, and then the release raises an error.
  end
  puts "released" # This gives nil, no error.
rescue ZKLock::Error => error
  error.tap { puts "failed: #{error.message}" }
end
workers.to_i.times { threads << Thread.new(&report) }
exit threads.filter_map(&:value).empty?
