// Package cluster is the client of an API server, on client-go: it reads whole lists of many kinds
// at once, and reads and changes single objects.
//
// [Client] only reads. If the API server does not permit or serve an object, the result is an
// observation of this object, not an error; only an unreachable cluster is an error. If several
// objects of a kind are requested, they are listed in pages by quayside's label, and objects
// missing from the list are fetched by name. The number of concurrent requests is bounded. The
// content of Secrets and ConfigMaps is not fetched. Credentials of the kubeconfig are sent only to
// its server, and appear in no message.
//
// [Writer] changes objects, for quayside adopt run. No other code sends writing requests to an API
// server.
//
// Start from [Open], [Client.Read], [Client.List] and [NewWriter].
package cluster
