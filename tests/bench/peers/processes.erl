%% The benchmarks as Erlang processes. Usage:
%%   erl +S WORKERS:WORKERS -noinput -pa FOLDER -run processes main BENCHMARK SIZE
%% prints one line of JSON.
-module(processes).
-export([main/1]).

main([Benchmark, Size]) ->
    N = list_to_integer(Size),
    case Benchmark of
        "ping_pong" -> ring(N, 2);
        "thread_ring" -> ring(N, 100);
        "counting" -> fan_out(N, 1);
        "fork_join_throughput" -> fan_out(N, 60);
        "fork_join_create" -> create(N);
        "native_pipeline" -> pipeline(N, 1000);
        "big" -> big(N, 120)
    end,
    halt(0).

%% Calls Begin and waits for the sum of as many numbers as there are Answers.
timed(Answers, Begin) ->
    Start = erlang:monotonic_time(nanosecond),
    Begin(),
    Got = lists:sum([receive {answer, X} -> X end || _ <- lists:seq(1, Answers)]),
    {(erlang:monotonic_time(nanosecond) - Start) / 1.0e9, Got}.

print(Operations, {Seconds, Got}, Want) ->
    io:format("{\"operations\": ~b, \"seconds\": ~.9f, \"got\": ~b, \"want\": ~b}~n",
              [Operations, Seconds, Got, Want]).

%% Passes a falling number round; whoever gets the 0 reports 1.
ring(N, Size) ->
    Main = self(),
    Last = spawn_link(fun() -> receive {next, Next} -> player(Next, Main) end end),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> player(Next, Main) end) end,
                        Last, lists:seq(2, Size)),
    Last ! {next, First},
    print(N, timed(1, fun() -> First ! N end), 1).

player(Next, Main) ->
    receive
        0 -> Main ! {answer, 1};
        Left -> Next ! Left - 1
    end,
    player(Next, Main).

%% Sends the numbers below N to the counters in turn and sums what they counted.
fan_out(N, Count) ->
    Main = self(),
    Counters = [spawn_link(fun() -> counter(0, Main) end) || _ <- lists:seq(1, Count)],
    Begin = fun() -> spawn_link(fun() -> produce(0, N, Counters, Counters) end) end,
    print(N, timed(Count, Begin), N * (N - 1) div 2).

produce(N, N, _, Counters) -> [Each ! stop || Each <- Counters];
produce(I, N, [], Counters) -> produce(I, N, Counters, Counters);
produce(I, N, [Each | Rest], Counters) ->
    Each ! I,
    produce(I + 1, N, Rest, Counters).

counter(Total, Main) ->
    receive
        stop -> Main ! {answer, Total};
        Value -> counter(Total + Value, Main)
    end.

%% Spawns a process a message; each counts its one message and is gone.
create(N) ->
    Main = self(),
    Tally = counters:new(2, [atomics]),
    Begin = fun() -> spawn_link(fun() -> parent(0, N, Tally, Main) end) end,
    print(N, timed(1, Begin), N * (N - 1) div 2).

parent(N, N, _, _) -> ok;
parent(I, N, Tally, Main) ->
    spawn(fun() -> child(N, Tally, Main) end) ! I,
    parent(I + 1, N, Tally, Main).

child(N, Tally, Main) ->
    receive Value -> counters:add(Tally, 1, Value) end,
    counters:add(Tally, 2, 1),
    case counters:get(Tally, 2) of
        N -> Main ! {answer, counters:get(Tally, 1)};
        _ -> ok
    end.

%% Passes N items through stages that each add 1, with 1,024 on their way, and counts those that
%% arrive in order.
pipeline(N, Stages) ->
    Main = self(),
    Ends = spawn_link(fun() -> receive {first, First} -> ends(N, Stages, First, Main) end end),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> stage(Next) end) end,
                        Ends, lists:seq(1, Stages)),
    print(N * Stages, timed(1, fun() -> Ends ! {first, First} end), N).

stage(Next) ->
    receive Value -> Next ! Value + 1 end,
    stage(Next).

ends(N, Stages, First, Main) ->
    Window = min(N, 16384),
    [First ! I || I <- lists:seq(0, Window - 1)],
    arrive(0, 0, Window, N, Stages, First, Main).

arrive(N, InOrder, _, N, _, _, Main) -> Main ! {answer, InOrder};
arrive(Got, InOrder, Sent, N, Stages, First, Main) ->
    Expected = Got + Stages,
    Right = receive Expected -> 1; _ -> 0 end,
    if Sent < N -> First ! Sent; true -> ok end,
    arrive(Got + 1, InOrder + Right, Sent + 1, N, Stages, First, Main).

%% Lets Count processes ping random others, one ping at a time.
big(N, Count) ->
    Main = self(),
    Chatters = [spawn_link(fun() -> receive {peers, Peers} -> chat(I, Peers, N, 0, Main) end end)
                || I <- lists:seq(0, Count - 1)],
    Peers = list_to_tuple(Chatters),
    {Seconds, _} = timed(Count, fun() -> [Each ! {peers, Peers} || Each <- Chatters] end),
    {_, Served} = timed(Count, fun() -> [Each ! report || Each <- Chatters] end),
    print(2 * N * Count, {Seconds, Served}, N * Count).

chat(State, Peers, N, Served, Main) when N > 0 ->
    Next = (State * 1103515245 + 12345) band 16#7fffffff,
    case element(1 + (Next bsr 8) rem tuple_size(Peers), Peers) of
        Own when Own =:= self() -> chat(Next, Peers, N, Served, Main);
        Other ->
            Other ! {ping, self()},
            chat(Next, Peers, N - 1, await_pong(Served), Main)
    end;
chat(_, _, _, Served, Main) ->
    Main ! {answer, 0},
    finished(Served, Main).

await_pong(Served) ->
    receive
        pong -> Served;
        {ping, From} -> From ! pong, await_pong(Served + 1)
    end.

finished(Served, Main) ->
    receive
        {ping, From} -> From ! pong, finished(Served + 1, Main);
        report -> Main ! {answer, Served}
    end.
