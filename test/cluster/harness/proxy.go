package harness

import (
	"io"
	"net"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Proxy forwards connections to the API server unchanged, and can break them.
type Proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// Proxy starts a proxy in front of the API server that ends with the test.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, to: c.ports.address(c.ports.api), conns: map[net.Conn]bool{}}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Through returns the configuration with the address of the proxy instead of the API server.
func (p *Proxy) Through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "https://" + p.listener.Addr().String()
	return config
}

// Cut breaks all open connections without notice, and returns their number.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.conns)
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
	return n / 2
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close() // the server is not listening at the moment
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.forward(client, server) })
		p.wg.Go(func() { p.forward(server, client) })
	}
}

func (p *Proxy) forward(to, from net.Conn) {
	_, _ = io.Copy(to, from) // it ends when either side does
	to.Close()
	from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, to)
	delete(p.conns, from)
}
