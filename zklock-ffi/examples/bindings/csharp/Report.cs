// mcs Report.cs && mono Report.exe HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]   (or: dotnet run Report.cs)
using System;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;
using System.Threading;

static class Report {
    const string Zk = "libzklock.so.0.1"; // A handle is an IntPtr, and a string is UTF-8 on Linux.
    [DllImport(Zk)] static extern uint zklock_abi();
    [DllImport(Zk)] static extern IntPtr zklock_last_error();
    [DllImport(Zk)] static extern int zklock_options_new(out IntPtr options);
    [DllImport(Zk)] static extern int zklock_options_set(IntPtr options, string option, string value);
    [DllImport(Zk)] static extern int zklock_client_new(string hosts, IntPtr options, out IntPtr client);
    [DllImport(Zk)] static extern int zklock_client_close(IntPtr client);
    [DllImport(Zk)] static extern int zklock_mutex_new(IntPtr client, string path, IntPtr nil, out IntPtr it);
    [DllImport(Zk)] static extern int zklock_acquire(IntPtr mutex, long timeout, out IntPtr hold);
    [DllImport(Zk)] static extern int zklock_hold_wait_lost(IntPtr hold, long timeout, IntPtr reason);
    [DllImport(Zk)] static extern ulong zklock_hold_token(IntPtr hold);
    [DllImport(Zk)] static extern long zklock_hold_valid_for(IntPtr hold);
    [DllImport(Zk)] static extern int zklock_release(IntPtr hold);
    [DllImport(Zk)] static extern void zklock_hold_free(IntPtr hold);

    static void Check(int status) { // on the thread of the call, which has its message
        if (status != 0) throw new ExternalException(Marshal.PtrToStringAnsi(zklock_last_error()), status);
    }

    sealed class Hold : IDisposable {
        readonly IntPtr id;
        public readonly CancellationTokenSource Lost = new CancellationTokenSource();

        public Hold(IntPtr mutex, long timeout) {
            Check(zklock_acquire(mutex, timeout, out id)); // The thread ends with the hold.
            new Thread(() => { if (zklock_hold_wait_lost(id, -1, IntPtr.Zero) == 0) Lost.Cancel(); }).Start();
        }

        public ulong Token => zklock_hold_token(id);
        public long ValidFor => zklock_hold_valid_for(id);
        public void Release() => Check(zklock_release(id)); // throws if the lock was lost
        public void Dispose() => zklock_hold_free(id); // also releases it, after an exception
    }

    static void Work(IntPtr mutex, double time) {
        using (var hold = new Hold(mutex, 3000)) {
            Console.WriteLine("acquired: token {0}, valid for {1} ms", hold.Token, hold.ValidFor);
            hold.Lost.Token.WaitHandle.WaitOne(TimeSpan.FromSeconds(time)); // the work
            hold.Release();
        }
        Console.WriteLine("released");
    }

    static void Try(Action action) {
        try { action(); }
        catch (Exception e) { Console.WriteLine("failed: " + e.Message); Environment.ExitCode = 1; }
    }

    static void Main(string[] args) => Try(() => {
        if (zklock_abi() != 1) throw new NotSupportedException("libzklock is not of version 0.1");
        Check(zklock_options_new(out IntPtr options)); // Like the client and the mutex, they live to the end.
        foreach (string word in new ArraySegment<string>(args, 4, args.Length - 4))
            Check(zklock_options_set(options, word.Split('=')[0], Regex.Replace(word, "^[^=]*=?", "")));
        Check(zklock_client_new(args[0], options, out IntPtr client));
        Check(zklock_mutex_new(client, args[1], IntPtr.Zero, out IntPtr mutex));
        AppDomain.CurrentDomain.ProcessExit += (sender, e) => zklock_client_close(client);
        Console.CancelKeyPress += (sender, e) => e.Cancel = zklock_client_close(client) == 0;
        var time = double.Parse(args[2], System.Globalization.CultureInfo.InvariantCulture);
        for (int n = int.Parse(args[3]); n > 0; n--) new Thread(() => Try(() => Work(mutex, time))).Start();
    }); // The process ends with its last thread. (mono hears of Ctrl-C on a terminal only, and not of SIGTERM.)
}
