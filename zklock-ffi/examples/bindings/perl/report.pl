# Usage: perl report.pl HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]
use v5.36; use experimental qw(try defer);

package ZKLock::Error { use overload '""' => sub ($self, @) { $self->{text} } }

package ZKLock {    # An object is a lock that is held.
    use FFI::Platypus 2; use List::Util qw(min max); use Time::HiRes 'time';
    my $c = FFI::Platypus->new(api => 2, lib => 'libzklock.so.0.1');
    $c->mangler(sub ($name) { "zklock_$name" });
    $c->function(abi => [] => 'uint32')->call == 1 or die "libzklock does not have interface 1\n";

    my %statuses = (    # Handles are opaque. C writes a result to a reference: opaque*.
        options_new => 'opaque*', options_set => 'opaque string string', client_close => 'opaque',
        client_new_lazy => 'string opaque opaque*', mutex_new => 'opaque string opaque opaque*',
        acquire_start => 'opaque sint64 opaque*', call_hold => 'opaque opaque*', call_fd => 'opaque int*',
        hold_wait_lost_start => 'opaque opaque*', release => 'opaque');

    $c->attach($_ => [split ' ', $statuses{$_}] => 'sint32') for keys %statuses;
    $c->attach("${_}_free" => ['opaque'] => 'void') for qw(call hold);    # undef is NULL.
    $c->attach(last_error => [] => 'string');
    $c->attach(["hold_$_->[0]" => $_->[0]], ['opaque'] => $_->[1], sub ($c, $self) { $c->($self->{hold}) })
        for [token => 'uint64'], [valid_for => 'sint64'];    # methods of a hold

    sub check ($s) { die bless { status => $s, text => last_error() }, 'ZKLock::Error' if $s }

    sub await ($call, $seconds = 'inf') {    # until it ends, or so long. A handler that dies ends it.
        check(call_fd($call, \my $descriptor));
        vec(my $wanted = '', $descriptor, 1) = 1;
        my $end = time + $seconds;    # A signal ends select, but not if it came just before: so 1 s.
        1 until select(my $ready = $wanted, undef, undef, max 0, min 1, $end - time) > 0 || time >= $end;
    }

    sub wait_lost ($self, $seconds = 'inf') { await($self->{loss}, $seconds) }

    sub synchronize ($lock, $timeout, $code) {    # The timeout is in ms. The code gets the hold.
        my ($call, $hold, $loss);
        defer { call_free($loss); hold_free($hold); call_free($call) }    # After a die: releases or cancels.
        check(acquire_start($lock, $timeout, \$call));
        await($call);
        check(call_hold($call, \$hold));
        check(hold_wait_lost_start($hold, \$loss));
        $code->(bless { hold => $hold, loss => $loss });
        check(release($hold));
    }
}

my ($hosts, $path, $seconds, $workers, @options) = @ARGV;
my ($code, $child, $client, @children) = (0, 1);
$| = 1;    # Each line is written at once.

$SIG{INT} = $SIG{TERM} = sub { $SIG{INT} = $SIG{TERM} = 'IGNORE'; die "interrupted\n" };

try {
    ZKLock::check(ZKLock::options_new(\my $set));    # Options, client and lock live to the end.
    ZKLock::check(ZKLock::options_set($set, /([^=]*)=?(.*)/s)) for @options;
    ZKLock::check(ZKLock::client_new_lazy($hosts, $set, \$client));    # Each child connects on its own.
    ZKLock::check(ZKLock::mutex_new($client, $path, undef, \my $lock));
    push @children, $child while $workers-- > 0 && ($child = fork // die "fork: $!\n");
    if ($child == 0) {
        ZKLock::synchronize($lock, 3000, sub ($hold) {
            say 'acquired: token ', $hold->token, ', valid for ', $hold->valid_for, ' ms';
            $hold->wait_lost($seconds);    # The work. A loss ends it, and then the release dies.
        });
        say 'released';
    } else { while (wait > 0) { $code = 1 if $? } }
} catch ($error) {
    say 'failed: ', "$error" =~ s/\n//r;
    $code = 1;
    kill TERM => $child ? @children : (); 1 while wait > 0;
}

exit($code | ZKLock::client_close($client));    # It waits until the servers have freed all locks.
