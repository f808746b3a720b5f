// Package cluster is the client of an API server, on client-go: whole lists of many
// kinds at once, and single objects to read and to change.
//
// [Client] only reads. What the API server does not permit, does not know or
// cannot hand out is an answer about that object and no failure; only a cluster
// that does not answer at all is. A kind that is asked for several times is
// listed in pages by quayside's label, what such a list leaves out is fetched by
// name, and a bounded number of requests is in flight. The content of Secrets and
// ConfigMaps is not fetched. Credentials of the kubeconfig go to its server
// and nowhere else, and appear in no message.
//
// [Writer] changes objects, for quayside adopt run: nothing else sends anything but
// reading requests to an API server.
//
// Start from [Open], [Client.Read], [Client.List] and [NewWriter].
package cluster
