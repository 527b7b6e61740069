<?php // Usage: php report.php HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]

final class ZKLock { // a lock that is held: $lock->token(), $lock->valid_for(), $lock->waitLost(2.5)
    static FFI $c; // Handles are void *, or H. C writes each result to an array of one.

    private function __construct(private FFI\CData $hold, private FFI\CData $loss) {}

    function __call(string $name, array $none): int { return self::$c->{"zklock_hold_$name"}($this->hold); }

    function waitLost(float $seconds): void { self::await($this->loss, $seconds); }

    static function call(string $name, mixed ...$arguments): void {
        $status = self::$c->{"zklock_$name"}(...$arguments);
        $status && throw new RuntimeException(self::$c->zklock_last_error(), $status);
    }

    private static function await(FFI\CData $call, float $seconds = INF): void { // until it ends, or so long
        self::call('call_fd', $call, $descriptor = self::$c->new('int[1]'));
        $end = microtime(true) + $seconds; // A signal ends select, but not if it came just before: so 1 s.
        do [$read, $left] = [[fopen("php://fd/$descriptor[0]", 'r')], max(0, min(1, $end - microtime(true)))];
        while (!@stream_select($read, $write, $except, 0, (int) ($left * 1e6)) && $left > 0);
    }

    static function synchronize(FFI\CData $lock, int $timeout, callable $work): void { // ms
        [$call, $hold, $loss] = [self::$c->new('H[1]'), self::$c->new('H[1]'), self::$c->new('H[1]')];
        try {
            self::call('acquire_start', $lock, $timeout, $call);
            self::await($call[0]);
            self::call('call_hold', $call[0], $hold);
            self::call('hold_wait_lost_start', $hold[0], $loss);
            $work(new self($hold[0], $loss[0]));
            self::call('release', $hold[0]);
        } finally { // After an exception, this releases or cancels in the background.
            foreach ([$loss, $call] as $handle) self::$c->zklock_call_free($handle[0]);
            self::$c->zklock_hold_free($hold[0]);
        }
    }
}

(ZKLock::$c = FFI::cdef('typedef void *H; typedef const char *S; uint32_t zklock_abi(); S zklock_last_error();
    int zklock_options_new(H *), zklock_options_set(H, S, S), zklock_client_new_lazy(S, H, H *),
    zklock_client_close(H), zklock_mutex_new(H, S, H, H *), zklock_acquire_start(H, int64_t, H *),
    zklock_call_hold(H, H *), zklock_hold_wait_lost_start(H, H *), zklock_release(H), zklock_call_fd(H,
    int *); uint64_t zklock_hold_token(H); int64_t zklock_hold_valid_for(H); void zklock_hold_free(H),
    zklock_call_free(H);', 'libzklock.so.0.1'))->zklock_abi() === 1 || throw new Error('not libzklock 0.1');

[, $hosts, $path, $seconds, $workers] = array_splice($argv, 0, 5); // The options are left.
[$client, $children, $child, $code] = [ZKLock::$c->new('H[1]'), [], 1, 0];

pcntl_async_signals(true);
foreach ([SIGINT, SIGTERM] as $s) // Once is enough. It also ends pcntl_wait (false: restart no system calls).
    pcntl_signal($s, fn () => pcntl_async_signals(false) && throw new RuntimeException('interrupted'), false);

try { // The options, the client and the lock live to the end. Each child connects on its own.
    ZKLock::call('options_new', $options = ZKLock::$c->new('H[1]'));
    foreach ($argv as $word) ZKLock::call('options_set', $options[0], ...explode('=', $word, 2) + ['', '']);
    ZKLock::call('client_new_lazy', $hosts, $options[0], $client);
    ZKLock::call('mutex_new', $client[0], $path, null, $lock = ZKLock::$c->new('H[1]'));
    while ($workers-- > 0 && ($child = pcntl_fork()) > 0) $children[] = $child;
    if ($child === 0) {
        ZKLock::synchronize($lock[0], 3000, function (ZKLock $hold) use ($seconds) {
            echo "acquired: token {$hold->token()}, valid for {$hold->valid_for()} ms\n";
            $hold->waitLost($seconds); // The work. A loss ends it, and then the release throws.
        });
        echo "released\n";
    } else while (pcntl_wait($status) > 0) $code |= $status !== 0 || $child < 0;
} catch (RuntimeException $error) {
    $code = print "failed: {$error->getMessage()}\n"; // 1
    foreach ($child ? $children : [] as $pid) posix_kill($pid, SIGTERM); while (pcntl_wait($status) > 0);
}

exit($code | ZKLock::$c->zklock_client_close($client[0])); // It waits for the servers to free all locks.
