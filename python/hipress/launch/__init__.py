"""Launcher: starts the processes of a job on one machine or many hosts, and ends all of them.

What belongs here: processes, hosts, output and exit statuses. What does not: anything that happens
inside a job's processes. The launcher imports no framework.

What runs where::

    launcher's machine                                  each host (may be the same machine)
    ------------------                                  -----------------------------------
    cli: options -> JobSpec -> a LaunchTask for each process
    Runner -- Policy
       | pipes: program, spec, commands ->              via ssh, mpirun or srun, or directly
       +---------------------------------------------->  supervisor -- the command and what it
       <- output, reports                                              has started

* ``cli`` reads the options, ``elastic`` checks those of elastic jobs, ``hostfile`` reads the hosts.
  ``job`` makes a task for each process, and ``ssh`` and ``mpi`` the commands that reach hosts.
* ``runner`` starts a supervisor for each task, prints the output with the process's name before
  each line (``output``), and handles signals and time limits.
* A policy decides what the end of a process means: ``failures`` stops the job at the first failure
  and names its cause; ``restarts`` (elastic jobs) starts workers again in their slots.
* ``supervisor`` runs one command on its host. It gets its program and the command's environment,
  the secret included, over standard input (``bootstrap``), never in arguments.

In which order a job ends:

1. A process ends. Its supervisor ends all processes that the command left, reports the status, and
   exits. ``StopAtFailure`` waits until the cause of a failure is visible: 0.25 s for a crash or an
   error, 3 s if only servers or the scheduler have exited with 1, because a worker's connections
   close before the worker has ended. ``RestartWorkers`` starts the worker again, or ends the job
   when one worker has finished or too few are left.
2. Survivors have 3 s to report the failure and end by themselves.
3. SIGTERM to the others, and after ``--grace`` seconds SIGKILL. Ctrl-C, SIGTERM and ``--timeout``
   begin here; a second Ctrl-C sends SIGKILL at once.
4. A connection that does not react for 5 s is closed.

If the launcher is killed or a connection breaks, standard input of the supervisors ends, and they
kill their commands. In elastic jobs workers survive that. See ``supervisor``.

Exit status: 0; that of the process that caused the failure (128 + signal if one killed it); 124 for
``--timeout``; 2 for wrong options.
"""
