package run

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
)

// probeInterval is the default pause between two rounds of probes.
const probeInterval = time.Second

// probing is a goroutine that sends probes during a run.
type probing struct {
	prober *verify.Prober
	probe  func(context.Context)
	step   atomic.Int64 // number of the last step that has begun
	stop   context.CancelFunc
	done   chan struct{}
}

// startProbes starts the probes before the first step of this run. If Input.Watch is 0, it does nothing.
func (r *runner) startProbes(ctx context.Context) error {
	if r.Watch == 0 || r.DryRun || r.probes != nil {
		return nil
	}
	prober, err := verify.NewProber(ctx, r.Cluster, r.Plan)
	if err != nil {
		return err
	}
	p := &probing{prober: prober, done: make(chan struct{})}
	for _, s := range r.Plan.Steps {
		if r.Journal.HasBegun(s.Number) {
			p.step.Store(int64(s.Number))
		}
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.probes = p
	p.probe = func(ctx context.Context) {
		prober.Probe(ctx, func() int { return int(p.step.Load()) }, r.Clock.Now)
	}
	p.probe(ctx)
	go func() {
		defer close(p.done)
		for ctx.Err() == nil {
			select {
			case <-time.After(cmp.Or(r.ProbeInterval, probeInterval)):
				p.probe(ctx)
			case <-ctx.Done():
			}
		}
	}()
	return nil
}

// beginStep makes the probes expect the deletions that a step causes.
func (p *probing) beginStep(s plan.Step) {
	if p != nil && int64(s.Number) > p.step.Load() {
		p.step.Store(int64(s.Number))
	}
}

// endProbes ends the probes and writes their results to the journal. If the run completed all steps and started
// OLM, endProbes first waits until OLM has run for Input.Watch. It sends a last round of probes for the final
// state.
func (r *runner) endProbes(ctx context.Context, begun time.Time, failed bool) error {
	if r.probes == nil {
		return nil
	}
	if left := r.Watch - r.Clock.Now().Sub(r.Journal.lastStart(r.Plan, begun)); !failed && r.Only == 0 && left > 0 && left <= r.Watch {
		r.Prompter.ReportProbing(left)
		_ = r.Clock.Sleep(ctx, left) // an interruption only ends the waiting
	}
	r.probes.stop()
	<-r.probes.done
	r.probes.probe(context.WithoutCancel(ctx))
	r.result.Probes = r.probes.prober.Results()
	if !r.Journal.HasStarted() {
		return nil
	}
	return r.recordEntry(Entry{Event: Probed, Probes: r.result.Probes})
}

// lastStart returns the time of the last start or restart of OLM after begun, or the zero time.
func (j *Journal) lastStart(p *plan.Plan, begun time.Time) time.Time {
	var out time.Time
	for _, e := range j.entries {
		a := actionOf(p, e)
		if a != nil && e.Event == Did && !e.Time.Before(begun) && (a.Do == plan.RestartPods || a.Do == plan.Scale && a.To > a.From) {
			out = e.Time
		}
	}
	return out
}
